// Recurrent layers and cells: weights around the functions.
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

double Recurrent::flops(const Tensor& x, const Tensor&) const {
  double matrices = 0;
  for (const Weights& w : weights)
    for (const Parameter* m : {&w.ih, &w.hh, &w.hr}) matrices += m->defined() ? double(m->numel()) : 0;
  return 2 * matrices * double(x.numel()) / double(input_size);
}

LSTMOutput Recurrent::run(const Tensor& x, const LSTMInput& given) const {
  return call(x, [&](const Tensor& in) {
    require(!weights.empty(), ErrorKind::argument, type(), "has no weights: it was moved from");
    require(Cell(kind_) == Cell::lstm || !given.c_0.defined(), ErrorKind::argument, type(),
            "has no cell state c_0: that is an LSTM's");
    const CastScope cast(Cast::low, in.checked(type()), given.h_0, given.c_0, weights[0].ih);
    std::vector<RecurrentLayer> layers;
    layers.reserve(weights.size());
    for (const Weights& w : weights)
      layers.push_back({Cell(kind_), false, cast(w.ih), cast(w.hh), cast(w.bias_ih), cast(w.bias_hh), cast(w.hr)});
    return recurrent_layers(type(), std::move(layers), cast(in), {cast(given.h_0), cast(given.c_0)},
                            {.dropout = options.dropout,
                             .train = training,
                             .bidirectional = options.bidirectional,
                             .batch_first = options.batch_first,
                             .lengths = given.lengths});
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
  const LSTMState next = call(x, [&](const Tensor& in) {
    const CastScope cast(Cast::low, in, h, c, weight_ih);
    const RecurrentLayer layer{Cell(kind_), false, cast(weight_ih), cast(weight_hh), cast(bias_ih), cast(bias_hh), {}};
    return recurrent_cell(type(), layer, cast(in), {cast(h), cast(c)});
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
