#include "ops/optimize/calls.h"

#include "core/check.h"

namespace volta::program {
namespace {

// Axes along which indices repeat are looked at once.
Layout without_repeats(Layout index) {
  for (int i = 0; i < index.rank(); ++i)
    if (index.strides[i] == 0) index.shape[i] = 1;
  return index;
}

void check_range(const Backend& device, const Arg& index, const Arg& indexed, int axis) {
  if (index.layout->numel() == 0) return;
  const Layout once = without_repeats(*index.layout);
  const auto range = device.index_range({index.data, &once, index.dtype, {}});
  const int64_t size = indexed.layout->shape[axis];
  if (!range || (range->low >= -size && range->high < size)) return;
  throw_error(ErrorKind::index, "optimize", "index ", range->low < -size ? range->low : range->high,
              " is outside of an axis of size ", size);
}

void make(Backend& b, const CopyCall& c) { b.copy(c.out, c.in); }
void make(Backend& b, const IotaCall& c) { b.iota(c.out, c.start, c.step); }
void make(Backend& b, const ElementwiseCall& c) { b.elementwise(c); }
void make(Backend& b, const ReduceCall& c) { b.reduce(c); }
void make(Backend& b, const SoftmaxCall& c) { b.softmax(c); }
void make(Backend& b, const ScanCall& c) { b.scan(c); }
void make(Backend& b, const GatherCall& c) { b.gather(c); }
void make(Backend& b, const ScatterCall& c) { b.scatter(c); }
void make(Backend& b, const SortCall& c) { b.sort(c); }
void make(Backend& b, const SearchCall& c) { b.search(c); }
void make(Backend& b, const MatmulCall& c) { b.matmul(c); }
void make(Backend& b, const ConvCall& c) { b.conv(c); }
void make(Backend& b, const PoolCall& c) { b.pool(c); }
void make(Backend& b, const NormCall& c) { b.norm(c); }
void make(Backend& b, const AttentionCall& c) { b.attention(c); }
void make(Backend& b, const RecurrentCall& c) { b.recurrent(c); }

}  // namespace

void check_places(const Backend& device, const Call& call) {
  if (const auto* gather = std::get_if<GatherCall>(&call)) check_range(device, gather->index, gather->in, gather->axis);
  if (const auto* scatter = std::get_if<ScatterCall>(&call))
    check_range(device, scatter->index, scatter->out, scatter->axis);
}

void run(Backend& device, const Call& call) {
  std::visit([&](const auto& c) { make(device, c); }, call);
}

}  // namespace volta::program
