// Recurrence: the composed form, and the fused loop with its gradient.
#include "ops/recurrent.h"

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "graph/composed.h"
#include "ops/elementwise.h"
#include "ops/fused.h"

namespace volta {
namespace {

constexpr const char* op = "recurrent";

Tensor rows(const Tensor& x) { return x.flatten(0, 1); }

// Where step i of the way lies in time.
int64_t step_number(const RecurrentLayer& l, int64_t i, int64_t time) { return l.reverse ? time - 1 - i : i; }

RecurStates composed(const RecurrentLayer& l, const Tensor& x, const Tensor& h0, const Tensor& c0) {
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

RecurrentOperands operands_of(const RecurrentLayer& l, const Tensor& x) {
  RecurrentOperands call{};
  call.reverse = l.reverse, call.cell = l.cell, call.dtype = x.dtype();
  call.time = x.size(0), call.batch = x.size(1), call.size = l.w_hh.size(1), call.inputs = x.size(2);
  call.x = arg(x), call.w_hh = arg(l.w_hh), call.w_ih = arg(l.w_ih);
  if (l.lengths) call.lengths = l.lengths->data();
  return call;
}

bool fuses_inputs(const RecurrentLayer& l, const Tensor& x) {
  return x.size(2) > 0 && backend(x.device()).fuses_inputs({operands_of(l, x), {}});
}

// What a fused call leaves for its gradient.
struct Trace {
  Tensor gates, hidden, cells, h0, c0;
};

Tensor last_contiguous(const Tensor& x) { return !x.defined() || x.stride(-1) == 1 ? x : x.contiguous(); }

// [time, batch, width], in memory with either of them first.
Tensor empty_steps(const Tensor& x, int64_t width, bool batch_first) {
  const Options like{x.dtype(), x.device()};
  if (!batch_first) return empty({x.size(0), x.size(1), width}, like);
  return empty({x.size(1), x.size(0), width}, like).transpose(0, 1);
}

void fused_gradients(const RecurrentLayer& l, const Tensor& x, const Trace& saved, std::span<const Tensor> g,
                     Gradients& d) {
  const bool gru = l.cell == Cell::gru, lstm = l.cell == Cell::lstm;
  const Tensor gh = last_contiguous(g[0]), gc = lstm ? last_contiguous(g[1]) : Tensor();
  const Tensor gates = empty_like(saved.gates), state = gru ? empty_like(saved.gates) : gates;
  RecurrentBackwardCall call{operands_of(l, x), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  call.fused_inputs = d.needs(0) && fuses_inputs(l, x);
  call.gates = arg(saved.gates), call.hidden = arg(saved.hidden), call.h0 = arg(saved.h0);
  if (saved.cells.defined()) call.cells = arg(saved.cells);
  if (lstm) call.c0 = arg(saved.c0);
  const Tensor h0 = empty_like(saved.h0), c0 = lstm ? empty_like(saved.c0) : Tensor();
  call.grad_gates = arg(gates), call.grad_h0 = arg(h0);
  if (gru) call.grad_state = arg(state);
  if (lstm) call.grad_c0 = arg(c0);
  if (call.fused_inputs) call.grad_x = arg(d[0] = empty_steps(x, x.size(2), x.stride(0) < x.stride(1)));
  if (d.needs(3)) call.grad_w_ih = arg(d[3] = empty(l.w_ih.shape(), {x.dtype(), x.device()}));
  if (d.needs(4)) call.grad_w_hh = arg(d[4] = empty(l.w_hh.shape(), {x.dtype(), x.device()}));
  if (gh.defined()) call.grad_hidden = arg(gh);
  if (gc.defined()) call.grad_cells = arg(gc);
  backend(x.device()).recurrent_backward(call);
  if (d.needs(0) && !call.fused_inputs) d[0] = matmul(gates, l.w_ih);
  if (d.needs(1)) d[1] = h0;
  if (d.needs(2)) d[2] = c0;
  if (d.needs(5)) d[5] = rows(gates).sum(0);
  if (d.needs(6)) d[6] = gru || !d.needs(5) ? rows(state).sum(0) : d[5];
}

RecurStates fused(const RecurrentLayer& given, const Tensor& input, const Tensor& h0, const Tensor& c0) {
  const int64_t size = given.w_hh.size(1), gates = gates_of(given.cell) * size;
  const bool gru = given.cell == Cell::gru, lstm = given.cell == Cell::lstm, takes = fuses_inputs(given, input);
  // If not in the loop, inputs are multiplied as one matrix.
  const Tensor x = takes ? last_contiguous(input) : input.contiguous();
  RecurrentLayer l = given;
  l.w_ih = given.w_ih.contiguous(), l.w_hh = given.w_hh.contiguous();
  Trace trace;
  RecurStates y;
  {
    const NoGrad off;
    const Options like{x.dtype(), x.device()};
    Tensor bias = !gru && l.b_ih.defined() ? l.b_ih + l.b_hh : gru ? l.b_hh : Tensor();
    if (takes) trace.gates = empty({x.size(0), x.size(1), gates}, like);
    else trace.gates = linear(x.detach(), l.w_ih.detach(), gru ? l.b_ih : bias).contiguous();
    if (gru || takes) bias = bias.defined() ? bias.contiguous() : zeros({gates}, like);
    trace.h0 = h0.detach().contiguous();
    if (lstm) trace.c0 = c0.detach().contiguous();
    y.hidden = empty_steps(x, size, l.batch_first);
    trace.hidden = y.hidden.detach();
    if (lstm || gru) trace.cells = empty_steps(x, size, false);
    if (lstm) y.cells = trace.cells.detach();
    RecurrentCall call{operands_of(l, x), {}};
    call.fused_inputs = takes;
    call.gates = arg(trace.gates), call.hidden = arg(y.hidden), call.h0 = arg(trace.h0);
    if (trace.cells.defined()) call.cells = arg(trace.cells);
    if (lstm) call.c0 = arg(trace.c0);
    if (bias.defined()) call.bias = arg(bias);
    backend(x.device()).recurrent(call);
  }
  const Tensor inputs[] = {x, h0, c0, l.w_ih, l.w_hh, l.b_ih, l.b_hh};
  const std::vector<int64_t> ends = l.lengths ? *l.lengths : std::vector<int64_t>();
  std::vector<Saved> saved;
  for (const Tensor& in : inputs) saved.push_back(save(in));
  auto rule = [saved, ends, many = l.lengths != nullptr, cell = l.cell, reverse = l.reverse, trace,
               states = save(trace.hidden)](std::span<const Tensor> g, Gradients& d) {
    std::vector<Tensor> in;
    for (const Saved& s : saved) in.push_back(s ? d.take(s) : Tensor());
    RecurrentLayer layer{cell, reverse, in[3], in[4], in[5], in[6], {}, many ? &ends : nullptr};
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

RecurStates recur_step(const RecurrentLayer& l, const Tensor& gates, const Tensor& h, const Tensor& c) {
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

RecurStates recur(const RecurrentLayer& layer, const Tensor& x, const Tensor& h0, const Tensor& c0) {
  if (x.dtype() == f16 || x.dtype() == bf16) {
    const auto wide = [](const Tensor& t) { return t.defined() ? t.to(f32) : t; };
    RecurrentLayer l = layer;
    for (Tensor* w : {&l.w_ih, &l.w_hh, &l.b_ih, &l.b_hh, &l.w_hr}) *w = wide(*w);
    const RecurStates y = recur(l, wide(x), wide(h0), wide(c0));
    return {y.hidden.to(x.dtype()), y.cells.defined() ? y.cells.to(x.dtype()) : y.cells};
  }
  const bool repays = x.size(0) > 1 && x.size(1) > 0;  // the fused loop packs the weight first
  if (!repays || layer.w_hr.defined() || !offered(x.device(), RecurrentCall{operands_of(layer, x), {}}))
    return composed(layer, x, h0, c0);
  return fused(layer, x, h0, c0);
}

}  // namespace volta
