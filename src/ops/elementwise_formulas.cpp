// The table of pointwise ops, with their formulas on tensor expressions. These run only where a gradient is differentiated
// again, so the file is compiled with -O1.
#include "math/elementwise.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

template <class... Ops> constexpr std::array<ElementwiseOp, sizeof...(Ops)> describe_all(List<Ops...>) {
  int i = 0;
  return {describe<Ops>(i++)...};
}
constexpr auto table = describe_all(ElementwiseOps{});

}  // namespace

constinit const ElementwiseOp* const point_ops = table.data();

}  // namespace volta
