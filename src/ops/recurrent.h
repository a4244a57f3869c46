// Recurrence: one layer in one direction, and what the functions, layers and cells make of it.
#pragma once
#include <vector>

#include <volta/ops/recurrent.h>

#include "backend/recurrent.h"

namespace volta {

struct RecurrentLayer {
  Cell cell;
  bool reverse = false;
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;  // biases and projection may be undefined
  const std::vector<int64_t>* lengths = nullptr;
  bool batch_first = false;  // how the states are to lie in memory
};
struct RecurStates {
  Tensor hidden, cells;  // [time, batch, size] after each step; past its end a sequence keeps its state
};
// x [time, batch, input], h0 and c0 [batch, size]; all of one floating dtype, and of fitting shapes.
RecurStates recur(const RecurrentLayer& layer, const Tensor& x, const Tensor& h0, const Tensor& c0);

// One step of ordinary ops: from the input's share of the gates, [batch, gates * size].
RecurStates recur_step(const RecurrentLayer& layer, const Tensor& gates, const Tensor& h, const Tensor& c);

// What gru, lstm and nn's layers compute, from weights, cells and directions of `layers`; nothing need fit, undefined
// states are zeros, and errors name `op`. Results that only an LSTM has are else undefined.
LSTMOutput recurrent_layers(const char* op, std::vector<RecurrentLayer> layers, const Tensor& x, const LSTMState& hx,
                            const RecurrenceOptions& options);

// Likewise what gru_cell, lstm_cell and nn's cells compute.
LSTMState recurrent_cell(const char* op, const RecurrentLayer& layer, const Tensor& x, const LSTMState& hx);

}  // namespace volta
