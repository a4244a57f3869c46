// Recurrent layers and cells: weights, layers and directions around the op.
#include <volta/nn/recurrent.h>

#include <cmath>

#include <volta/create.h>
#include <volta/nn/dropout.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/checked_arithmetic.h"
#include "ops/autocast.h"
#include "ops/check.h"
#include "ops/recurrent.h"

namespace volta::nn {
namespace {

Cell cell_named(const Choice<Nonlinearity>& name, const char* type) {
  return name.of(type, "nonlinearity") == Nonlinearity::tanh ? Cell::tanh : Cell::relu;
}

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t time, const char* op) {
  require(int64_t(lengths.size()) == batch, ErrorKind::argument, op, lengths.size(), " lengths for a batch of ", batch);
  for (const int64_t n : lengths)
    require(n > 0 && n <= time, ErrorKind::argument, op, "length ", n, " is not within 1 and ", time);
}

// A given state of shape `wanted`, or zeros.
Tensor state_of(const Tensor& given, const Shape& wanted, const Tensor& x, const char* op, const char* name) {
  if (!given.defined()) return zeros(wanted, {x.dtype(), x.device()});
  require(given.shape() == wanted, ErrorKind::shape, op, name, " has shape ", given, ", not ", wanted);
  require(given.dtype() == x.dtype(), ErrorKind::dtype, op, name, " is ", given.dtype(), ", the input ", x.dtype());
  common_device(given, x, op);
  return given;
}

}  // namespace

Recurrent::Recurrent(const char* type, int kind, int64_t input, int64_t hidden, const RecurrentOptions& o)
    : Layer(type),
      input_size(positive(input, type, "input_size")),
      hidden_size(positive(hidden, type, "hidden_size")),
      options(o),
      kind_(kind) {
  layer_count(o.num_layers, type, "num_layers");
  probability(o.dropout, type, "dropout");
  const bool lstm = Cell(kind) == Cell::lstm;
  require(o.proj_size >= 0 && o.proj_size < hidden && (lstm || o.proj_size == 0), ErrorKind::argument, type,
          "proj_size ", o.proj_size, lstm ? " must be smaller than hidden_size" : " is for an LSTM only");
  const int64_t directions = o.bidirectional ? 2 : 1, out = o.proj_size > 0 ? int64_t(o.proj_size) : hidden;
  const int64_t gates = (Checked(gates_of(Cell(kind))) * hidden).value(type);
  blamed_on(type, [&] {
    for (int64_t i = 0; i < o.num_layers * directions; ++i) {
      Weights w;
      w.ih = empty({gates, i < directions ? input : directions * out}), w.hh = empty({gates, out});
      if (o.bias) w.bias_ih = empty({gates}), w.bias_hh = empty({gates});
      if (o.proj_size) w.hr = empty({out, hidden});
      weights.push_back(std::move(w));
    }
  });
  reset_parameters();
}

void Recurrent::reset_parameters() {
  const double bound = 1 / std::sqrt(double(hidden_size));
  for (Weights& w : weights)
    for (Parameter* p : {&w.ih, &w.hh, &w.bias_ih, &w.bias_hh, &w.hr})
      if (p->defined()) init::uniform_(*p, -bound, bound);
}

void Recurrent::fields(Fields& f) {
  const size_t directions = options.bidirectional ? 2 : 1;
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string place = "_l" + std::to_string(i / directions) + (i % directions ? "_reverse" : "");
    Weights& w = weights[i];
    f("weight_ih" + place, w.ih), f("weight_hh" + place, w.hh);
    f("bias_ih" + place, w.bias_ih), f("bias_hh" + place, w.bias_hh), f("weight_hr" + place, w.hr);
  }
}

LSTMOutput Recurrent::run_layers(const Tensor& in, const LSTMInput& given) const {
  const CastScope cast(Cast::low, in, given.h_0, given.c_0, weights[0].ih);
  const Tensor x = cast(in);
  const DType dtype = cast(weights[0].ih).dtype();
  require(x.dtype() == dtype, ErrorKind::dtype, type(), "the input is ", x.dtype(), ", the weights ", dtype);
  const bool lstm = Cell(kind_) == Cell::lstm;
  require(lstm || !given.c_0.defined(), ErrorKind::argument, type(), "has no cell state c_0: that is an LSTM's");
  const int64_t batch = x.size(1), directions = options.bidirectional ? 2 : 1, count = int64_t(weights.size());
  const Shape state{count, batch, weights[0].hh.size(1)}, cell{count, batch, hidden_size};
  const Tensor h0 = state_of(cast(given.h_0), state, x, type(), "h_0");
  const Tensor c0 = lstm ? state_of(cast(given.c_0), cell, x, type(), "c_0") : Tensor();
  const bool many = !given.lengths.empty();
  Tensor inside;
  if (many) {
    check_lengths(given.lengths, batch, x.size(0), type());
    const Tensor time = arange(0, x.size(0), 1, {i64, x.device()}).unsqueeze(1);
    inside = (time < tensor(given.lengths).to(x.device())).unsqueeze(-1);
  }
  std::vector<Tensor> h_n, c_n;
  Tensor y = x;
  for (int64_t i = 0; i < count; i += directions) {
    if (i > 0 && options.dropout > 0) y = dropout(y, options.dropout, training);
    std::vector<Tensor> sides;
    for (int64_t s = i; s < i + directions; ++s) {
      const Weights& w = weights[size_t(s)];
      const bool last_layer = i + directions == count;
      const RecurrentLayer layer{Cell(kind_),
                                 s > i,
                                 cast(w.ih),
                                 cast(w.hh),
                                 cast(w.bias_ih),
                                 cast(w.bias_hh),
                                 cast(w.hr),
                                 many ? &given.lengths : nullptr,
                                 last_layer && options.batch_first};
      const RecurStates all = recur(layer, y, h0.select(0, s), lstm ? c0.select(0, s) : c0);
      const int64_t last = s > i ? 0 : x.size(0) - 1;
      h_n.push_back(all.hidden.select(0, last));
      if (lstm) c_n.push_back(all.cells.select(0, last));
      sides.push_back(many ? where(inside, all.hidden, 0) : all.hidden);
    }
    y = directions == 2 ? cat(sides, -1) : sides[0];
  }
  return {y, stack(h_n), lstm ? stack(c_n) : Tensor()};
}

double Recurrent::flops(const Tensor& x, const Tensor&) const {
  double matrices = 0;
  for (const Weights& w : weights)
    for (const Parameter* m : {&w.ih, &w.hh, &w.hr}) matrices += m->defined() ? double(m->numel()) : 0;
  return 2 * matrices * double(x.numel()) / double(input_size);
}

LSTMOutput Recurrent::run(const Tensor& x, const LSTMInput& given) const {
  return call(x, [&](const Tensor& in) {
    require(!weights.empty(), ErrorKind::argument, type(), "has no weights: it was moved from");
    const int64_t rank = in.checked(type()).dim();
    require((rank == 2 || rank == 3) && in.size(-1) == input_size, ErrorKind::shape, type(), "an input of shape ", in,
            " is not [time, batch, ", input_size, "] nor [time, ", input_size, "]");
    const bool turned = rank == 3 && options.batch_first;
    require(in.size(turned ? 1 : 0) > 0, ErrorKind::shape, type(), "an input of shape ", in, " has no steps");
    if (turned || rank == 3) {
      LSTMOutput y = run_layers(turned ? in.transpose(0, 1) : in, given);
      if (turned) y.output = y.output.transpose(0, 1);
      return y;
    }
    const auto alone = [](const Tensor& s) { return s.defined() ? s.unsqueeze(1) : s; };
    const LSTMOutput y = run_layers(in.unsqueeze(1), {alone(given.h_0), alone(given.c_0), given.lengths});
    return LSTMOutput{y.output.squeeze(1), y.h_n.squeeze(1), y.c_n.defined() ? y.c_n.squeeze(1) : y.c_n};
  });
}

PackedLSTMOutput Recurrent::run(const PackedSequence& x, const LSTMInput& given) const {
  x.check(type());
  require(given.lengths.empty(), ErrorKind::argument, type(), "a packed sequence has its own lengths");
  const PaddedSequence padded = pad_packed_sequence(x, options.batch_first);
  const LSTMOutput y = run(padded.data, {given.h_0, given.c_0, padded.lengths});
  return {pack_padded_sequence(y.output, padded.lengths, options.batch_first), y.h_n, y.c_n};
}

RecurrentOutput SingleState::operator()(const Tensor& x, const RecurrentInput& given) const {
  LSTMOutput y = run(x, {given.h_0, {}, given.lengths});
  return {std::move(y.output), std::move(y.h_n)};
}
PackedOutput SingleState::operator()(const PackedSequence& x, const RecurrentInput& given) const {
  PackedLSTMOutput y = run(x, {given.h_0, {}, given.lengths});
  return {std::move(y.output), std::move(y.h_n)};
}

RNN::RNN(Int input, Int hidden, const RecurrentOptions& o)
    : SingleState("RNN", int(cell_named(o.nonlinearity, "RNN")), input, hidden, o) {}
LSTM::LSTM(Int input, Int hidden, const RecurrentOptions& o) : Recurrent("LSTM", int(Cell::lstm), input, hidden, o) {}
GRU::GRU(Int input, Int hidden, const RecurrentOptions& o) : SingleState("GRU", int(Cell::gru), input, hidden, o) {}

RecurrentCell::RecurrentCell(const char* type, int kind, int64_t input, int64_t hidden, const CellOptions& o)
    : Layer(type), kind_(kind) {
  const int64_t gates = (Checked(gates_of(Cell(kind))) * positive(hidden, type, "hidden_size")).value(type);
  const double bound = 1 / std::sqrt(double(hidden));
  positive(input, type, "input_size");
  blamed_on(type, [&] {
    weight_ih = uniform({gates, input}, -bound, bound), weight_hh = uniform({gates, hidden}, -bound, bound);
    if (o.bias) bias_ih = uniform({gates}, -bound, bound), bias_hh = uniform({gates}, -bound, bound);
  });
}
void RecurrentCell::fields(Fields& f) {
  f("weight_ih", weight_ih), f("weight_hh", weight_hh), f("bias_ih", bias_ih), f("bias_hh", bias_hh);
}
LSTMOutput RecurrentCell::step(const Tensor& x, const Tensor& h, const Tensor& c) const {
  const LSTMState next = call(x, [&](const Tensor& input) {
    const CastScope cast(Cast::low, input, h, c, weight_ih);
    const Tensor in = cast(input);
    require((in.checked(type()).dim() == 1 || in.dim() == 2) && in.size(-1) == weight_ih.size(1), ErrorKind::shape,
            type(), "an input of shape ", in, " is not [batch, ", weight_ih.size(1), "] nor [", weight_ih.size(1), "]");
    Shape shape = in.shape();
    shape[shape.size() - 1] = weight_hh.size(1);
    const bool lstm = Cell(kind_) == Cell::lstm;
    const Tensor h0 = state_of(cast(h), shape, in, type(), "h");
    const Tensor c0 = lstm ? state_of(cast(c), shape, in, type(), "c") : Tensor();
    const RecurrentLayer layer{Cell(kind_),   false, cast(weight_ih), cast(weight_hh), cast(bias_ih),
                               cast(bias_hh), {},    nullptr};
    const RecurStates y = recur_step(layer, linear(in, layer.w_ih, layer.b_ih), h0, c0);
    return LSTMState{y.hidden, y.cells};
  });
  return {{}, next.h, next.c};
}

RNNCell::RNNCell(Int input, Int hidden, const CellOptions& o)
    : RecurrentCell("RNNCell", int(cell_named(o.nonlinearity, "RNNCell")), input, hidden, o) {}
GRUCell::GRUCell(Int input, Int hidden, const CellOptions& o)
    : RecurrentCell("GRUCell", int(Cell::gru), input, hidden, o) {}
LSTMCell::LSTMCell(Int input, Int hidden, const CellOptions& o)
    : RecurrentCell("LSTMCell", int(Cell::lstm), input, hidden, o) {}

}  // namespace volta::nn
