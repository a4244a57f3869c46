// Recurrent layers and cells: RNN, LSTM, GRU over sequences of equal or different lengths.
#pragma once
#include <concepts>
#include <string>
#include <vector>

#include <volta/nn/layer.h>
#include <volta/ops/packed_sequence.h>
#include <volta/ops/recurrent.h>

namespace volta::nn {

// Where a call starts, and how long the sequences are: gru(x, {.h_0 = h, .lengths = {5, 3}}), lstm(x, {h, c}). Undefined
// states are zeros; lengths are from 1 to the steps of x.
struct RecurrentInput {
  Tensor h_0 = {};  // [layers * directions, batch, size]
  std::vector<int64_t> lengths = {};
};
struct LSTMInput {
  Tensor h_0 = {}, c_0 = {};
  std::vector<int64_t> lengths = {};
};
using volta::LSTMOutput;
using volta::LSTMState;
using volta::RecurrentOutput;
struct PackedOutput {
  PackedSequence output;
  Tensor h_n;
};
struct PackedLSTMOutput {
  PackedSequence output;
  Tensor h_n, c_n;
};
template <class T>
concept StateTensor = std::convertible_to<const T&, Tensor>;  // gru(x, h) beside gru(x, {})

enum class Nonlinearity { tanh, relu };
constexpr std::array<std::string_view, 2> choice_names(Nonlinearity) { return {"tanh", "relu"}; }
struct RecurrentOptions {
  Int num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // of what one layer gives the next
  bool bidirectional = false;
  Int proj_size = 0;                                       // of an LSTM: its states are projected to this size
  Choice<Nonlinearity> nonlinearity = Nonlinearity::tanh;  // of an RNN
};
// Options with a number of layers that was given by position.
inline RecurrentOptions with_layers(RecurrentOptions rest, Int layers, const char* type) {
  if (rest.num_layers != 1) throw Error(Error::Kind::argument, type, "num_layers is given twice");
  rest.num_layers = layers;
  return rest;
}

// What RNN, LSTM and GRU share. Weights are called as in PyTorch: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
// weight_hr_l0, with _reverse for the second direction, and drawn within 1 / sqrt(hidden_size).
class Recurrent : public Layer {
 public:
  // What all three do, for code that does not know which it has; c_n is undefined unless it is an LSTM's.
  LSTMOutput run(const Tensor& x, const LSTMInput& input = {}) const;
  PackedLSTMOutput run(const PackedSequence& x, const LSTMInput& input = {}) const;
  void reset_parameters();
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;

  struct Weights {
    Parameter ih, hh, bias_ih, bias_hh, hr;
  };
  std::vector<Weights> weights;  // of layer 0, its reverse, layer 1, …
  int64_t input_size, hidden_size;
  RecurrentOptions options;

 protected:
  Recurrent(const char* type, int kind, int64_t input, int64_t hidden, const RecurrentOptions& o);

 private:
  int kind_;
};

// One state. x [time, batch, input_size], batch first if so made, or [time, input_size]: auto [y, h] = gru(x, h0).
class SingleState : public Recurrent {
 public:
  using Recurrent::Recurrent;
  RecurrentOutput operator()(const Tensor& x, const RecurrentInput& input = {}) const;
  PackedOutput operator()(const PackedSequence& x, const RecurrentInput& input = {}) const;
  RecurrentOutput operator()(const Tensor& x, const StateTensor auto& h_0) const {
    return (*this)(x, RecurrentInput{h_0});
  }
  PackedOutput operator()(const PackedSequence& x, const StateTensor auto& h_0) const {
    return (*this)(x, RecurrentInput{h_0});
  }
};
// nn::RNN(8, 16)
struct RNN : SingleState {
  RNN(Int input_size, Int hidden_size, const RecurrentOptions& options = {});
  RNN(Int input, Int hidden, volta::detail::Whole auto num_layers, const RecurrentOptions& rest = {})
      : RNN(input, hidden, with_layers(rest, num_layers, "RNN")) {}
};
// nn::GRU(8, 16, {.batch_first = true})
struct GRU : SingleState {
  GRU(Int input_size, Int hidden_size, const RecurrentOptions& options = {});
  GRU(Int input, Int hidden, volta::detail::Whole auto num_layers, const RecurrentOptions& rest = {})
      : GRU(input, hidden, with_layers(rest, num_layers, "GRU")) {}
};
// nn::LSTM(8, 16, {.num_layers = 2}), or nn::LSTM(8, 16, 2, {.batch_first = true}): auto [y, h, c] = lstm(x, {h0, c0}).
struct LSTM : Recurrent {
  LSTM(Int input_size, Int hidden_size, const RecurrentOptions& options = {});
  LSTM(Int input, Int hidden, volta::detail::Whole auto num_layers, const RecurrentOptions& rest = {})
      : LSTM(input, hidden, with_layers(rest, num_layers, "LSTM")) {}
  LSTMOutput operator()(const Tensor& x, const LSTMInput& input = {}) const { return run(x, input); }
  PackedLSTMOutput operator()(const PackedSequence& x, const LSTMInput& input = {}) const { return run(x, input); }
};

struct CellOptions {
  bool bias = true;
  Choice<Nonlinearity> nonlinearity = Nonlinearity::tanh;  // of an RNNCell
};
// One step: x [batch, input_size] or [input_size].
class RecurrentCell : public Layer {
 public:
  void fields(Fields& f) override;
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCell(const char* type, int kind, int64_t input, int64_t hidden, const CellOptions& o);
  LSTMOutput step(const Tensor& x, const Tensor& h, const Tensor& c) const;

 private:
  int kind_;
};
// h = nn::RNNCell(8, 16)(x, h).
struct RNNCell : RecurrentCell {
  RNNCell(Int input_size, Int hidden_size, const CellOptions& options = {});
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const { return step(x, h, {}).h_n; }
};
struct GRUCell : RecurrentCell {
  GRUCell(Int input_size, Int hidden_size, const CellOptions& options = {});
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const { return step(x, h, {}).h_n; }
};
// auto [h1, c1] = nn::LSTMCell(8, 16)(x, {h, c}).
struct LSTMCell : RecurrentCell {
  LSTMCell(Int input_size, Int hidden_size, const CellOptions& options = {});
  LSTMState operator()(const Tensor& x, const LSTMState& state = {}) const {
    const LSTMOutput y = step(x, state.h, state.c);
    return {y.h_n, y.c_n};
  }
};

}  // namespace volta::nn
