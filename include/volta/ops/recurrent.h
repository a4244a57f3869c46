// Options and results of recurrence.
#pragma once
#include <vector>

#include <volta/tensor.h>

namespace volta {

// Options of rnn_tanh, rnn_relu, gru and lstm.
struct RecurrenceOptions {
  bool has_biases = true;  // whether params hold b_ih and b_hh
  Int num_layers = 1;
  double dropout = 0;  // of what one layer gives the next, if `train`
  bool train = false;
  bool bidirectional = false;         // params hold the layer's other direction after it
  bool batch_first = false;           // x and the output are [batch, time, …]
  std::vector<int64_t> lengths = {};  // of the sequences, from 1 to the steps of x; the output past them is 0
};
struct RecurrentOutput {
  Tensor output, h_n;
};
struct LSTMOutput {
  Tensor output, h_n, c_n;
};
struct LSTMState {
  Tensor h, c;
};

}  // namespace volta
