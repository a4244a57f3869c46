// Products of bf16 by instructions that multiply groups of values along k and add them up in f32: the group, the step of the
// register tile, and the operand that packs groups. Only the level `bfloat` of ARM64 has them: on
// x86-64, vdpbf16ps runs at half the rate of products in f32 (measured on Sapphire Rapids).
#include "backend/cpu/gemm/kernels/part.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// As many values along k as one instruction multiplies.
enum class Group : uint64_t {};
constexpr int group_size = sizeof(Group) / sizeof(bfloat16);

template <> struct Step<Group> {
  static constexpr int rows_together = 2;

  // Two rows of A times two columns of B: a vector of four sums.
  template <int rows, int vectors>
  [[gnu::always_inline]] static void multiply_add(const Group* __restrict a, int64_t, const Group* __restrict b,
                                                  Vector<float> (&sums)[rows][vectors]) {
    const auto two = [](const Group* from) {
      bfloat16x8_t groups;
      __builtin_memcpy(&groups, from, sizeof groups);
      return groups;
    };
    bfloat16x8_t left[rows / 2];
#pragma GCC unroll 32
    for (int i = 0; i < rows; i += 2) left[i / 2] = two(a + i);
#pragma GCC unroll 32
    for (int j = 0; j < 2 * vectors; ++j) {
      const bfloat16x8_t right = two(b + 2 * j);
#pragma GCC unroll 32
      for (int i = 0; i < rows; i += 2)
        sums[i + j % 2][j / 2] = vbfmmlaq_f32(sums[i + j % 2][j / 2], left[i / 2], right);
    }
  }

  template <int rows, int vectors> [[gnu::always_inline]] static void arrange(Vector<float> (&sums)[rows][vectors]) {
#pragma GCC unroll 32
    for (int i = 0; i < rows; i += 2) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) {
        const Vector<float> left = sums[i][j], right = sums[i + 1][j];
        sums[i][j] = __builtin_shufflevector(left, right, 0, 1, 4, 5);
        sums[i + 1][j] = __builtin_shufflevector(left, right, 2, 3, 6, 7);
      }
    }
  }
};

struct GroupTile {
  using Element = Group;
  static constexpr TileSizes sizes = [] {
    TileSizes s = VOLTA_ISA::sizes<float>;
    s.block_k = s.block_k * int(sizeof(float)) / int(sizeof(Group));
    return s;
  }();
  template <int rows, int vectors> static constexpr auto kernel = tile_kernel<float, rows, vectors, Group>;
};

[[gnu::always_inline]] inline Group gather_group(const bfloat16* from, int64_t depth_step, int64_t count) {
  uint64_t bits = 0;
  for (int64_t l = 0; l < count; ++l) bits |= uint64_t(from[l * depth_step].bits) << 16 * l;
  return Group(bits);
}

// The groups of four neighbouring columns from rows of B.
[[gnu::always_inline]] inline void zip_groups(Group* to, const bfloat16* from, int64_t depth_step) {
  const auto pairs = [=](int l) {
    Some<uint16_t, 4> x, y;
    __builtin_memcpy(&x, from + l * depth_step, sizeof x);
    __builtin_memcpy(&y, from + (l + 1) * depth_step, sizeof y);
    return Some<uint32_t, 4>(__builtin_shufflevector(x, y, 0, 4, 1, 5, 2, 6, 3, 7));
  };
  const Some<uint32_t, 8> all = __builtin_shufflevector(pairs(0), pairs(2), 0, 4, 1, 5, 2, 6, 3, 7);
  __builtin_memcpy(to, &all, sizeof all);
}

// A matrix as an operand of multiply(), whose depths are groups; the last one is filled up with zeros.
struct GroupOperand {
  const bfloat16* data;
  int64_t step, depth_step, depth;

  View<Group> panel(Group* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) const {
    tile = ceil_div(tile, Step<Group>::rows_together) * Step<Group>::rows_together;
    for (int64_t q = 0; q < k; ++q) {
      const bfloat16* from = data + i * step + (p + q) * group_size * depth_step;
      const int64_t count = smaller(group_size, depth - (p + q) * group_size);
      Group* to = buffer + q * tile;
      int64_t l = 0;
      if (count == group_size && depth_step == 1)
        for (; l < n; ++l) __builtin_memcpy(to + l, from + l * step, sizeof(Group));
      else if (count == group_size && step == 1)
        for (; l + 4 <= n; l += 4) zip_groups(to + l, from + l, depth_step);
      for (; l < n; ++l) to[l] = gather_group(from + l * step, depth_step, count);
      for (; l < tile; ++l) to[l] = Group(0);
    }
    return {buffer, 1, tile};
  }
};

void part(const Gemm& p, const Rectangle& r, Range depth, void* partial) {
  part_of<bfloat16>(
      p, r, depth, partial, [&](const auto& a, const auto& b, float* c, int64_t c_step, bool add, const auto& done) {
        const int64_t k = depth.size;
        const GroupOperand left = {a.data, a.step, a.depth_step, k}, right = {b.data, b.step, b.depth_step, k};
        Multiplication<float, GroupOperand, GroupOperand, GroupTile>(left, right, c, c_step)
            .run(r.rows.size, r.columns.size, ceil_div(k, group_size), add, done);
      });
}

constexpr TileSizes tile = GroupTile::sizes;

}  // namespace

static constexpr GemmKernels kernels_bf16 = {
    {tile.rows(tile.vectors), tile.vectors* lanes<float>, lanes<float>, 6, 4}, sizeof(float), part, nullptr};

}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::GemmKernels& volta::cpu::gemm_bf16<volta::cpu::Isa::VOLTA_ISA>() {
  return VOLTA_ISA::kernels_bf16;
}
