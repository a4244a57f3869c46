// The fused loop of recurrent layers over time, forward and backward.
#pragma once
#include "backend/backend.h"

namespace volta {

// In this order the gates lie along the last axis of weights and gates: lstm i, f, g, o; gru r, z, n.
enum class Cell : uint8_t { tanh, relu, lstm, gru };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

// One layer in one direction, f32 or f64. What has steps is [time, batch, …] with the last axis contiguous; what belongs to
// gates and cells is contiguous, like the weights.
struct RecurrentOperands {
  bool reverse;
  bool fused_inputs;  // the loop multiplies the inputs as well, which spares a pass over all gates
  Cell cell;
  DType dtype;
  int64_t time, batch, size, inputs;
  Arg x;           // [time, batch, inputs]
  Arg gates;       // [time, batch, gates * size]: the input's share, replaced by the activated gates; read backward
  Arg hidden;      // [time, batch, size]: the states, written forward
  Arg cells;       // [time, batch, size]: cell states of an lstm; of a gru the hidden share of n
  Arg h0, c0;      // [batch, size]
  Arg w_hh, w_ih;  // [gates * size, size], [gates * size, inputs]
  const int64_t* lengths = nullptr;  // of each row of the batch: after its end the state stays
};

struct RecurrentCall : RecurrentOperands {
  Arg bias;  // [gates * size]. GRU: b_hh. Others: b_ih + b_hh, if the inputs are fused
};

struct RecurrentBackwardCall : RecurrentOperands {
  Arg grad_gates;               // [time, batch, gates * size]: of the input's share, written
  Arg grad_state;               // of a gru the same of the state's share, written
  Arg grad_x;                   // written if the inputs are fused
  Arg grad_h0, grad_c0;         // [batch, size], written
  Arg grad_w_hh, grad_w_ih;     // written if they have data
  Arg grad_hidden, grad_cells;  // of the results; may be without data
};

}  // namespace volta
