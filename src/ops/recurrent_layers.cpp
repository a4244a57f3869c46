// Recurrence as functions: layers and directions over sequences, and single steps.
#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/arguments.h"
#include "ops/check.h"
#include "ops/recurrent.h"

namespace volta {
namespace {

// The rows of the weights of a layer: one for each gate and unit.
int64_t rows_of(const RecurrentLayer& l, const char* op) {
  const int64_t gates = gates_of(l.cell);
  const Shape& w = l.w_ih.checked(op).shape();
  require(w.size() == 2 && w[0] > 0 && w[0] % gates == 0, ErrorKind::shape, op, "w_ih has shape ", w, ", not [size of ",
          gates, " gates, inputs]");
  return w[0];
}

// How many states a step gives: of an LSTM with projections not that of the cells.
int64_t state_size(const RecurrentLayer& l, int64_t size, const char* op) {
  if (!l.w_hr.defined()) return size;
  require(l.w_hr.dim() == 2 && l.w_hr.size(0) > 0, ErrorKind::shape, op, "w_hr has shape ", l.w_hr, ", not [size, ",
          size, "]");
  return l.w_hr.size(0);
}

// Checks that t has such a shape, the dtype of the input and its device.
void check_beside(const Tensor& t, const char* name, const Shape& wanted, const Tensor& x, const char* op) {
  require(t.checked(op).shape() == wanted, ErrorKind::shape, op, name, " has shape ", t, ", not ", wanted);
  require(t.dtype() == x.dtype(), ErrorKind::dtype, op, "the input is ", x.dtype(), ", ", name, " ", t.dtype());
  common_device(t, x, op);
}

using Sizes = std::initializer_list<int64_t>;
void check_weight(const Tensor& w, const char* name, Sizes wanted, const Tensor& x, const char* op) {
  if (w.defined()) {  // the usual case without a call: a cell checks four weights each step
    const TensorImpl &a = w.impl(), &b = x.impl();
    const Shape& shape = a.layout.shape;
    if (std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end()) && a.dtype == b.dtype &&
        a.storage->device == b.storage->device)
      return;
  }
  check_beside(w, name, Shape(std::span(wanted.begin(), wanted.size())), x, op);
}

// So many rows, for these inputs and states.
void check_weights(const RecurrentLayer& l, int64_t rows, int64_t inputs, int64_t out, const Tensor& x,
                   const char* op) {
  check_weight(l.w_ih, "w_ih", {rows, inputs}, x, op);
  check_weight(l.w_hh, "w_hh", {rows, out}, x, op);
  if (l.b_ih.defined()) check_weight(l.b_ih, "b_ih", {rows}, x, op);
  if (l.b_hh.defined()) check_weight(l.b_hh, "b_hh", {rows}, x, op);
  if (l.w_hr.defined()) check_weight(l.w_hr, "w_hr", {out, rows / gates_of(l.cell)}, x, op);
}

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t time, const char* op) {
  require(int64_t(lengths.size()) == batch, ErrorKind::argument, op, lengths.size(), " lengths for a batch of ", batch);
  for (const int64_t n : lengths)
    require(n > 0 && n <= time, ErrorKind::argument, op, "length ", n, " is not within 1 and ", time);
}

// A given state of shape `wanted`, or zeros.
Tensor state_of(const Tensor& given, const Shape& wanted, const Tensor& x, const char* op, const char* name) {
  if (!given.defined()) return zeros(wanted, {x.dtype(), x.device()});
  check_beside(given, name, wanted, x, op);
  return given;
}

// x [time, batch, inputs], h0 and c0 [layers and directions, batch, size]: all fit.
LSTMOutput run(std::vector<RecurrentLayer>& layers, const Tensor& x, const Tensor& h0, const Tensor& c0,
               const RecurrenceOptions& o) {
  const int64_t directions = o.bidirectional ? 2 : 1, count = int64_t(layers.size());
  const bool many = !o.lengths.empty();
  Tensor inside;
  if (many) {
    const Tensor time = arange(0, x.size(0), 1, {i64, x.device()}).unsqueeze(1);
    inside = (time < tensor(o.lengths).to(x.device())).unsqueeze(-1);
  }
  std::vector<Tensor> h_n, c_n;
  Tensor y = x;
  for (int64_t i = 0; i < count; i += directions) {
    if (i > 0 && o.dropout > 0) y = dropout(y, o.dropout, o.train);
    std::vector<Tensor> sides;
    for (int64_t s = i; s < i + directions; ++s) {
      RecurrentLayer& layer = layers[size_t(s)];
      layer.reverse = s > i;
      layer.lengths = many ? &o.lengths : nullptr;
      layer.batch_first = i + directions == count && o.batch_first;
      const RecurStates all = recur(layer, y, h0.select(0, s), c0.defined() ? c0.select(0, s) : c0);
      const int64_t last = s > i ? 0 : x.size(0) - 1;
      h_n.push_back(all.hidden.select(0, last));
      if (c0.defined()) c_n.push_back(all.cells.select(0, last));
      sides.push_back(many ? where(inside, all.hidden, 0) : all.hidden);
    }
    y = directions == 2 ? cat(sides, -1) : sides[0];
  }
  return {y, stack(h_n), c0.defined() ? stack(c_n) : Tensor()};
}

// The params of PyTorch: w_ih, w_hh, b_ih and b_hh if there are biases, w_hr of an LSTM with projections.
std::vector<RecurrentLayer> layers_of(Cell cell, const char* op, const std::vector<Tensor>& params,
                                      const RecurrenceOptions& o) {
  const auto count = size_t(layer_count(o.num_layers, op, "num_layers") * (o.bidirectional ? 2 : 1));
  const size_t usual = o.has_biases ? 4 : 2, given = params.size();
  const bool projects = cell == Cell::lstm && given == count * (usual + 1);
  require(projects || given == count * usual, ErrorKind::argument, op, given, " params for ", count,
          " layers and directions, which have ", usual, " each");
  for (const Tensor& p : params) (void)p.checked(op);
  std::vector<RecurrentLayer> layers;
  for (const Tensor* p = params.data(); layers.size() < count;) {
    RecurrentLayer& layer = layers.emplace_back(RecurrentLayer{cell, false, p[0], p[1], {}, {}, {}});
    if (o.has_biases) layer.b_ih = p[2], layer.b_hh = p[3];
    if (projects) layer.w_hr = p[usual];
    p += usual + size_t(projects);
  }
  return layers;
}

RecurrentOutput one_state(Cell cell, const char* op, const Tensor& x, const Tensor& hx,
                          const std::vector<Tensor>& params, const RecurrenceOptions& o) {
  LSTMOutput y = recurrent_layers(op, layers_of(cell, op, params, o), x, {hx, {}}, o);
  return {std::move(y.output), std::move(y.h_n)};
}

LSTMState two_states(const std::vector<Tensor>& hx, const char* op) {
  require(hx.empty() || hx.size() == 2, ErrorKind::argument, op, "needs two states, h and c, got ", hx.size());
  return hx.empty() ? LSTMState() : LSTMState{hx[0], hx[1]};
}

}  // namespace

LSTMOutput recurrent_layers(const char* op, std::vector<RecurrentLayer> layers, const Tensor& in, const LSTMState& hx,
                            const RecurrenceOptions& o) {
  require_floating(in, op);
  probability(o.dropout, op, "dropout");
  const RecurrentLayer& first = layers[0];
  const int64_t rows = rows_of(first, op), size = rows / gates_of(first.cell), out = state_size(first, size, op);
  const int64_t rank = in.dim(), inputs = first.w_ih.size(1), directions = o.bidirectional ? 2 : 1;
  require((rank == 2 || rank == 3) && in.size(-1) == inputs, ErrorKind::shape, op, "an input of shape ", in,
          " is not [time, batch, ", inputs, "] nor [time, ", inputs, "]");
  for (size_t i = 0; i < layers.size(); ++i)
    check_weights(layers[i], rows, int64_t(i) < directions ? inputs : directions * out, out, in, op);
  const bool alone = rank == 2, turned = !alone && o.batch_first;
  const Tensor x = alone ? in.unsqueeze(1) : turned ? in.transpose(0, 1) : in;
  require(x.size(0) > 0, ErrorKind::shape, op, "an input of shape ", in, " has no steps");
  const auto state = [&](const Tensor& given, int64_t width, const char* name) {
    Shape wanted{int64_t(layers.size()), x.size(1), width};
    if (alone) wanted = {int64_t(layers.size()), width};
    const Tensor s = state_of(given, wanted, in, op, name);
    return alone ? s.unsqueeze(1) : s;
  };
  if (!o.lengths.empty()) check_lengths(o.lengths, x.size(1), x.size(0), op);
  return blamed_on(op, [&] {
    const Tensor h0 = state(hx.h, out, "h_0"), c0 = first.cell == Cell::lstm ? state(hx.c, size, "c_0") : Tensor();
    LSTMOutput y = run(layers, x, h0, c0, o);
    if (turned) y.output = y.output.transpose(0, 1);
    if (!alone) return y;
    return LSTMOutput{y.output.squeeze(1), y.h_n.squeeze(1), y.c_n.defined() ? y.c_n.squeeze(1) : y.c_n};
  });
}

LSTMState recurrent_cell(const char* op, const RecurrentLayer& l, const Tensor& x, const LSTMState& hx) {
  require_floating(x, op);
  const int64_t rows = rows_of(l, op), size = rows / gates_of(l.cell), inputs = l.w_ih.size(1);
  require((x.dim() == 1 || x.dim() == 2) && x.size(-1) == inputs, ErrorKind::shape, op, "an input of shape ", x,
          " is not [batch, ", inputs, "] nor [", inputs, "]");
  check_weights(l, rows, inputs, size, x, op);
  Shape state = x.shape();
  state[state.size() - 1] = size;
  return blamed_on(op, [&] {
    const Tensor h = state_of(hx.h, state, x, op, "h");
    const Tensor c = l.cell == Cell::lstm ? state_of(hx.c, state, x, op, "c") : Tensor();
    const RecurStates y = recur_step(l, linear(x, l.w_ih, l.b_ih), h, c);
    return LSTMState{y.hidden, y.cells};
  });
}

RecurrentOutput Plain::rnn_tanh(const Tensor& x, const Tensor& hx, const std::vector<Tensor>& params,
                                const RecurrenceOptions& o) {
  return one_state(Cell::tanh, "rnn_tanh", x, hx, params, o);
}
RecurrentOutput Plain::rnn_relu(const Tensor& x, const Tensor& hx, const std::vector<Tensor>& params,
                                const RecurrenceOptions& o) {
  return one_state(Cell::relu, "rnn_relu", x, hx, params, o);
}
RecurrentOutput Plain::gru(const Tensor& x, const Tensor& hx, const std::vector<Tensor>& params,
                           const RecurrenceOptions& o) {
  return one_state(Cell::gru, "gru", x, hx, params, o);
}
LSTMOutput Plain::lstm(const Tensor& x, const std::vector<Tensor>& hx, const std::vector<Tensor>& params,
                       const RecurrenceOptions& o) {
  return recurrent_layers("lstm", layers_of(Cell::lstm, "lstm", params, o), x, two_states(hx, "lstm"), o);
}

Tensor Plain::rnn_tanh_cell(const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                            const Tensor& b_ih, const Tensor& b_hh) {
  return recurrent_cell("rnn_tanh_cell", {Cell::tanh, false, w_ih, w_hh, b_ih, b_hh, {}}, x, {hx, {}}).h;
}
Tensor Plain::rnn_relu_cell(const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                            const Tensor& b_ih, const Tensor& b_hh) {
  return recurrent_cell("rnn_relu_cell", {Cell::relu, false, w_ih, w_hh, b_ih, b_hh, {}}, x, {hx, {}}).h;
}
Tensor Plain::gru_cell(const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                       const Tensor& b_hh) {
  return recurrent_cell("gru_cell", {Cell::gru, false, w_ih, w_hh, b_ih, b_hh, {}}, x, {hx, {}}).h;
}
LSTMState Plain::lstm_cell(const Tensor& x, const std::vector<Tensor>& hx, const Tensor& w_ih, const Tensor& w_hh,
                           const Tensor& b_ih, const Tensor& b_hh) {
  const RecurrentLayer layer{Cell::lstm, false, w_ih, w_hh, b_ih, b_hh, {}};
  return recurrent_cell("lstm_cell", layer, x, two_states(hx, "lstm_cell"));
}

}  // namespace volta
