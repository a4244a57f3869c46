// The fused loop of recurrent layers over time, forward and backward.
#pragma once
#include "backend/backend.h"

namespace volta {

// In this order the gates lie along the last axis of weights and gates: lstm i, f, g, o; gru r, z, n.
enum class Cell : uint8_t { tanh, relu, lstm, gru };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

// One layer in one direction, f32 or f64, time first; everything contiguous but for the last two. A call without gates
// asks whether the device has the loop, and is the faster for taking these inputs.
struct RecurCall {
  bool backward, reverse;
  Cell cell;
  int64_t time, batch, size;
  int64_t inputs;  // 0, or the width of inputs that the loop multiplies as well, by further columns of the weight
  Arg x, grad_x;   // [time, batch, inputs]; read forward, and written backward
  Arg gates;       // [time, batch, gates * size]: the input's share, replaced by the activated gates; read backward
  Arg hidden;      // [time, batch, size]: the states, written forward
  Arg cells;       // [time, batch, size]: cell states of an lstm; of a gru the hidden share of n
  Arg h0, c0;      // [batch, size]
  Arg weight;      // [gates * size, size + inputs], applied to the state and the input
  Arg bias;  // [gates * size]: of a gru with the state's share, of others in place of the input's share if there are inputs
  const int64_t* lengths = nullptr;  // of each row of the batch: after its end the state stays
  Arg grad_gates;                    // [time, batch, gates * size]: of the input's share, written
  Arg grad_state;                    // of a gru the same of the state's share, written
  Arg grad_h0, grad_c0;              // [batch, size], written
  Arg grad_hidden, grad_cells;       // of the results; the last axis contiguous; grad_cells may be without data
};

}  // namespace volta
