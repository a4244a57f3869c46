// Picks the row functions for the instruction set of this machine, once.
#include "backend/cpu/point.h"

#include <array>

#include "backend/cpu/isa.h"

namespace volta::cpu {

namespace baseline {
template <int Part> const Rows* point_part(int op, int kernel);
}
#if defined(__x86_64__)
namespace v3 {
template <int Part> const Rows* point_part(int op, int kernel);
}
namespace v4 {
template <int Part> const Rows* point_part(int op, int kernel);
}
#endif

namespace {

using Parts = std::array<FindRows, 4>;
constexpr int kernels = 4;
using Table = std::array<std::array<const Rows*, kernels>, size_t(PointOps::size)>;

Parts parts() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() >= Isa::v4) return {v4::point_part<0>, v4::point_part<1>, v4::point_part<2>, v4::point_part<3>};
#endif
#if defined(VOLTA_HAVE_ISA_V3)
  if (isa() >= Isa::v3) return {v3::point_part<0>, v3::point_part<1>, v3::point_part<2>, v3::point_part<3>};
#endif
  return {baseline::point_part<0>, baseline::point_part<1>, baseline::point_part<2>, baseline::point_part<3>};
}

Table make_table() {
  const Parts find = parts();
  Table t;
  for (int op = 0; op < PointOps::size; ++op)
    for (int k = 0; k < kernels; ++k) t[size_t(op)][size_t(k)] = find[size_t(op) % find.size()](op, k);
  return t;
}

}  // namespace

const Rows* point_rows(int op, int kernel) {
  static const Table table = make_table();
  return table[size_t(op)][size_t(kernel)];
}

}  // namespace volta::cpu
