// Recurrence: the composed form, and the fused loop with its gradient.
#include "nn/recur.h"

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/composed.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

constexpr const char* op = "recurrent";

Tensor rows(const Tensor& x) { return x.flatten(0, 1); }

// Where step i of the way lies in time.
int64_t step_number(const RecurLayer& l, int64_t i, int64_t time) { return l.reverse ? time - 1 - i : i; }

RecurStates composed(const RecurLayer& l, const Tensor& x, const Tensor& h0, const Tensor& c0) {
  const Tensor gates = linear(x, l.w_ih, l.b_ih);
  const size_t time = size_t(x.size(0));
  const Tensor ends = l.lengths ? tensor(*l.lengths).to(x.device()).unsqueeze(1) : Tensor();
  std::vector<Tensor> hidden(time), cells(time);
  RecurStates now{h0, c0};
  for (int64_t i = 0; i < x.size(0); ++i) {
    const int64_t t = step_number(l, i, x.size(0));
    RecurStates next = recur_step(l, gates.select(0, t), now.hidden, now.cells);
    if (l.lengths) {
      const Tensor lasts = ends > t;
      next.hidden = where(lasts, next.hidden, now.hidden);
      if (next.cells.defined()) next.cells = where(lasts, next.cells, now.cells);
    }
    now = next;
    hidden[size_t(t)] = now.hidden;
    cells[size_t(t)] = now.cells;
  }
  return {stack(hidden), now.cells.defined() ? stack(cells) : Tensor()};
}

RecurCall call_of(const RecurLayer& l, const Tensor& w, int64_t time, int64_t batch) {
  RecurCall call{};
  call.reverse = l.reverse, call.cell = l.cell;
  call.time = time, call.batch = batch, call.size = l.w_hh.size(1), call.inputs = w.size(1) - call.size;
  call.weight = arg(w);
  if (l.lengths) call.lengths = l.lengths->data();
  return call;
}

// Whether the loop is to multiply the inputs as well, which spares a pass over all gates.
bool takes_inputs(const RecurLayer& l, const Tensor& x) {
  if (x.size(2) == 0) return false;
  RecurCall question = call_of(l, l.w_hh, x.size(0), x.size(1));
  question.inputs = x.size(2);
  return backend(x.device()).recur(question);
}
Tensor both_weights(const RecurLayer& l) { return cat({l.w_hh, l.w_ih}, 1); }

// What a fused call leaves for its gradient.
struct Trace {
  Tensor gates, hidden, cells, h0, c0;
};

// The inputs of each step side by side with the states before it, which are those after it shifted by one.
Tensor inputs_of_steps(const RecurLayer& l, const Tensor& x, const Trace& saved) {
  const int64_t time = x.size(0), others = time - 1, first = step_number(l, 0, time);
  const Tensor all = empty({time, x.size(1), x.size(2) + saved.h0.size(1)}, {x.dtype(), x.device()});
  const Tensor states = all.narrow(2, x.size(2), saved.h0.size(1));
  all.narrow(2, 0, x.size(2)).copy_(x);
  states.select(0, first).copy_(saved.h0);
  states.narrow(0, l.reverse ? 0 : 1, others).copy_(saved.hidden.narrow(0, l.reverse ? 1 : 0, others));
  return rows(all);
}

Tensor last_contiguous(const Tensor& g) { return !g.defined() || g.stride(-1) == 1 ? g : g.contiguous(); }

void fused_gradients(const RecurLayer& l, const Tensor& x, const Trace& saved, std::span<const Tensor> g,
                     Gradients& d) {
  const int64_t time = x.size(0), batch = x.size(1);
  const bool gru = l.cell == Cell::gru, lstm = l.cell == Cell::lstm;
  const bool fused_inputs = d.needs(0) && takes_inputs(l, x);
  const Tensor w = fused_inputs ? both_weights(l) : l.w_hh.contiguous();
  const Tensor gh = last_contiguous(g[0]), gc = lstm ? last_contiguous(g[1]) : Tensor();
  const Tensor gates = empty_like(saved.gates), state = gru ? empty_like(saved.gates) : gates;
  const Tensor h0 = empty_like(saved.h0), c0 = lstm ? empty_like(saved.c0) : Tensor();
  RecurCall call = call_of(l, w, time, batch);
  call.backward = true;
  call.gates = arg(saved.gates), call.hidden = arg(saved.hidden), call.h0 = arg(saved.h0);
  if (saved.cells.defined()) call.cells = arg(saved.cells);
  if (lstm) call.c0 = arg(saved.c0), call.grad_c0 = arg(c0);
  if (gru) call.grad_state = arg(state);
  if (fused_inputs) call.grad_x = arg(d[0] = empty_like(x));
  call.grad_gates = arg(gates), call.grad_h0 = arg(h0);
  if (gh.defined()) call.grad_hidden = arg(gh);
  if (gc.defined()) call.grad_cells = arg(gc);
  backend(x.device()).recur(call);
  if (d.needs(0) && !fused_inputs) d[0] = matmul(gates, l.w_ih);
  if (d.needs(1)) d[1] = h0;
  if (d.needs(2)) d[2] = c0;
  if (d.needs(3) || d.needs(4)) {
    const Tensor in = inputs_of_steps(l, x, saved);
    const int64_t width = x.size(2), others = in.size(1) - width;
    // One product where they share the gates' gradients, which take long to pack.
    const Tensor both = gru ? Tensor() : matmul(rows(gates).mT(), in);
    if (d.needs(3))
      d[3] = gru ? matmul(rows(gates).mT(), in.narrow(1, 0, width)) : both.narrow(1, 0, width).contiguous();
    if (d.needs(4))
      d[4] = gru ? matmul(rows(state).mT(), in.narrow(1, width, others)) : both.narrow(1, width, others).contiguous();
  }
  if (d.needs(5)) d[5] = rows(gates).sum(0);
  if (d.needs(6)) d[6] = gru || !d.needs(5) ? rows(state).sum(0) : d[5];
}

RecurStates fused(const RecurLayer& l, const Tensor& given, const Tensor& h0, const Tensor& c0) {
  const Tensor x = given.contiguous();  // a copy of the input alone: products over all of time are one matrix
  const int64_t time = x.size(0), batch = x.size(1), size = l.w_hh.size(1);
  const bool gru = l.cell == Cell::gru, lstm = l.cell == Cell::lstm;
  Trace trace;
  RecurStates y;
  {
    const NoGrad off;
    const Options like{x.dtype(), x.device()};
    const bool fused_inputs = takes_inputs(l, x);
    const Tensor w = fused_inputs ? both_weights(l) : l.w_hh.contiguous();
    Tensor bias = !gru && l.b_ih.defined() ? l.b_ih + l.b_hh : gru ? l.b_hh : Tensor();
    if (fused_inputs) trace.gates = empty({time, batch, w.size(0)}, like);
    else trace.gates = linear(x.detach(), l.w_ih.detach(), gru ? l.b_ih : bias).contiguous();
    if (gru || fused_inputs) bias = bias.defined() ? bias.contiguous() : zeros({w.size(0)}, like);
    trace.h0 = h0.detach().contiguous();
    if (lstm) trace.c0 = c0.detach().contiguous();
    y.hidden = empty({time, batch, size}, like);
    trace.hidden = y.hidden.detach();
    if (lstm || gru) trace.cells = empty({time, batch, size}, like);
    if (lstm) y.cells = trace.cells.detach();
    RecurCall call = call_of(l, w, time, batch);
    call.gates = arg(trace.gates), call.hidden = arg(y.hidden), call.h0 = arg(trace.h0);
    if (trace.cells.defined()) call.cells = arg(trace.cells);
    if (lstm) call.c0 = arg(trace.c0);
    if (bias.defined()) call.bias = arg(bias);
    if (fused_inputs) call.x = arg(x);
    backend(x.device()).recur(call);
  }
  const Tensor inputs[] = {x, h0, c0, l.w_ih, l.w_hh, l.b_ih, l.b_hh};
  const std::vector<int64_t> ends = l.lengths ? *l.lengths : std::vector<int64_t>();
  std::vector<Saved> saved;
  for (const Tensor& in : inputs) saved.push_back(save(in));
  auto rule = [saved, ends, many = l.lengths != nullptr, cell = l.cell, reverse = l.reverse, trace,
               states = save(trace.hidden)](std::span<const Tensor> g, Gradients& d) {
    std::vector<Tensor> in;
    for (const Saved& s : saved) in.push_back(s ? d.take(s) : Tensor());
    RecurLayer layer{cell, reverse, in[3], in[4], in[5], in[6], {}, many ? &ends : nullptr};
    d.take(states);  // nobody changed them
    if (!grad_enabled()) return fused_gradients(layer, in[0], trace, g, d);
    through_composed(in, g, d, [&](const std::vector<Tensor>& own) {
      layer.w_ih = own[3], layer.w_hh = own[4], layer.b_ih = own[5], layer.b_hh = own[6];
      const RecurStates again = composed(layer, own[0], own[1], own[2]);
      return std::vector{again.hidden, again.cells};
    });
  };
  Tensor outputs[] = {y.hidden, y.cells};
  record_all(op, std::span(outputs, lstm ? 2 : 1), inputs, std::move(rule));
  return {outputs[0], outputs[1]};
}

}  // namespace

RecurStates recur_step(const RecurLayer& l, const Tensor& gates, const Tensor& h, const Tensor& c) {
  const Tensor share = linear(h, l.w_hh, l.b_hh);
  if (l.cell == Cell::tanh) return {tanh(gates + share), {}};
  if (l.cell == Cell::relu) return {relu(gates + share), {}};
  if (l.cell == Cell::gru) {
    const auto x = gates.chunk(3, -1), s = share.chunk(3, -1);
    const Tensor reset = sigmoid(x[0] + s[0]), update = sigmoid(x[1] + s[1]), fresh = tanh(x[2] + reset * s[2]);
    return {fresh + update * (h - fresh), {}};
  }
  const auto p = (gates + share).chunk(4, -1);
  const Tensor cell = sigmoid(p[1]) * c + sigmoid(p[0]) * tanh(p[2]), hidden = sigmoid(p[3]) * tanh(cell);
  return {l.w_hr.defined() ? linear(hidden, l.w_hr) : hidden, cell};
}

RecurStates recur(const RecurLayer& layer, const Tensor& x, const Tensor& h0, const Tensor& c0) {
  if (x.dtype() == f16 || x.dtype() == bf16) {
    const auto wide = [](const Tensor& t) { return t.defined() ? t.to(f32) : t; };
    RecurLayer l = layer;
    for (Tensor* w : {&l.w_ih, &l.w_hh, &l.b_ih, &l.b_hh, &l.w_hr}) *w = wide(*w);
    const RecurStates y = recur(l, wide(x), wide(h0), wide(c0));
    return {y.hidden.to(x.dtype()), y.cells.defined() ? y.cells.to(x.dtype()) : y.cells};
  }
  const RecurCall question = call_of(layer, layer.w_hh, x.size(0), x.size(1));
  const bool repays = x.size(0) > 1;  // the fused loop packs the weight first
  if (!repays || layer.w_hr.defined() || !backend(x.device()).recur(question)) return composed(layer, x, h0, c0);
  return fused(layer, x, h0, c0);
}

}  // namespace volta
