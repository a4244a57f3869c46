// The pointwise ops with their formulas on tensor expressions. These run where a gradient is itself differentiated, rarely: the
// file is compiled for its own speed of compilation.
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
