// Optimizer steps on the CPU: the tensors of a call are cut into pieces that threads take. Halves are staged as f32.
#include "backend/update.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/update/kernels.h"

namespace volta::cpu {
namespace {

constexpr int64_t piece = 1 << 14;  // elements worth a thread
constexpr int64_t staged = 512;

void run_piece(const UpdateCall& call, UpdateRule::Row row, const UpdateTensor& t, int64_t begin, int64_t end) {
  const int64_t size = size_of(call.dtype), compute_size = call.dtype == f64 ? 8 : 4;
  auto* x = static_cast<char*>(t.x) + begin * size;
  const auto* g = static_cast<const char*>(t.g) + begin * size;
  void* states[UpdateRule::max_states] = {};
  for (int k = 0; k < call.rule->states; ++k) states[k] = static_cast<char*>(t.state[k]) + begin * compute_size;
  if (!is_half(call.dtype)) return row(call.rule->self, end - begin, call.constants, x, g, states);
  const CastRow widen = cast_row(f32, call.dtype), narrow = cast_row(call.dtype, f32);
  float values[staged], gradients[staged];
  for (int64_t i = begin; i < end; i += staged, x += staged * size, g += staged * size) {
    const int64_t n = std::min(staged, end - i);
    widen(n, values, x), widen(n, gradients, g);
    row(call.rule->self, n, call.constants, values, gradients, states);
    narrow(n, x, values);
    for (int k = 0; k < call.rule->states; ++k) states[k] = static_cast<float*>(states[k]) + n;
  }
}

}  // namespace

void update(const UpdateCall& call) {
  static const UpdateRows& rows = for_isa([]<Isa level>() -> const UpdateRows& { return update_rows<level>(); });
  const bool wide = call.dtype == f64;
  const UpdateRule::Row row = call.rule->index < 0 ? call.rule->row[wide] : rows[size_t(call.rule->index)][wide];
  int64_t total = 0;
  for (const UpdateTensor& t : call.tensors) total += t.n;
  if (total <= piece) {
    for (const UpdateTensor& t : call.tensors) run_piece(call, row, t, 0, t.n);
    return;
  }
  const int64_t each = std::min(piece, part_size(total, piece));
  std::vector<int64_t> first(call.tensors.size() + 1, 0);  // piece of each tensor
  for (size_t i = 0; i < call.tensors.size(); ++i) first[i + 1] = first[i] + divide_up(call.tensors[i].n, each);
  parallel(first.back(), [&](int64_t part) {
    const auto i = size_t(std::upper_bound(first.begin(), first.end(), part) - first.begin()) - 1;
    const int64_t begin = (part - first[i]) * each, n = call.tensors[i].n;
    run_piece(call, row, call.tensors[i], begin, std::min(n, begin + each));
  });
}

}  // namespace volta::cpu
