// Pointwise loops on the GPU: picks the kernel of an op and describes the operands to it.
#include "backend/cuda/map.h"

#include <cstring>

#include "ops/point.h"

namespace volta::cuda {
namespace {

constexpr int kernels = 4, all_operands = max_inputs + 1;
using Table = std::array<std::array<const MapKernels*, kernels>, size_t(PointOps::size)>;
using Operands = std::array<const Arg*, all_operands>;  // the output, then the inputs; numbers and such have no data

template <size_t... Part> Table make_table(std::index_sequence<Part...>) {
  constexpr const MapKernels* (*find[])(int, int) = {map_part<int(Part)>...};
  Table t;
  for (int op = 0; op < PointOps::size; ++op)
    for (int k = 0; k < kernels; ++k) t[size_t(op)][size_t(k)] = find[size_t(op) % sizeof...(Part)](op, k);
  return t;
}

bool is_condition(const MapCall& call, int input) {
  const int first = call.kernel > 0 ? 1 : 0;
  return input >= first && input < first + call.op->masks;
}

// The pack kernel for operands that are contiguous, aligned and of one dtype.
std::optional<DType> pack_dtype(const MapCall& call, const Operands& operands, const Walk<all_operands>& walk) {
  if (call.compute != f32 || walk.rank != 1 || walk.size[0] < 4) return {};
  std::optional<DType> dtype;
  for (int k = 0; k <= call.inputs; ++k) {
    const Arg& x = *operands[size_t(k)];
    const bool truth = k == 0 ? call.op->truth && call.kernel == 0 : is_condition(call, k - 1);
    if (!x.data && truth && !call.in[k - 1].unused) return {};
    if (!x.data) continue;
    if (walk.stride[0][k] != size_of(x.dtype) || reinterpret_cast<uintptr_t>(x.data) % 16 != 0) return {};
    if (x.dtype != (truth ? boolean : dtype.value_or(x.dtype))) return {};
    if (!truth) dtype = x.dtype;
  }
  return dtype && (*dtype == f32 || is_half(*dtype)) ? dtype : std::nullopt;
}

void run_packs(Context& c, const MapCall& call, const Operands& operands, int64_t n, DType dtype, const MapKernels& k) {
  PackCall p{n, call.out.data, {}, {}};
  for (int i = 0; i < call.inputs; ++i) {
    p.in[i] = operands[size_t(i) + 1]->data;
    if (!p.in[i] && !call.in[i].unused) p.scalar[i] = call.in[i].scalar.as<float>();
  }
  const int64_t each = threads * k.packs_per_thread * (16 / size_of(dtype));
  launch(c, call.op->name, k.packs[size_t(dtype)], blocks_for(n, each), threads, p);
}

uint64_t scalar_bits(const Scalar& scalar, DType dtype) {
  return visit(dtype, [&]<class T>(TypeTag<T>) {
    const T value = scalar.as<T>();
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  });
}

}  // namespace

void Context::map(const MapCall& call) {
  static const Table table = make_table(std::make_index_sequence<map_parts>());
  const OnDevice current(device);
  if (call.out.layout->numel() == 0) return;
  if (call.op->index < 0) throw Error(Error::Kind::internal, call.op->name, "a user's op has no GPU kernel");
  const MapKernels& k = *table[size_t(call.op->index)][size_t(call.kernel)];
  const Arg none;
  Operands operands{&call.out};
  for (int i = 0; i < max_inputs; ++i) {
    const bool given = i < call.inputs && call.in[i].layout && !call.in[i].unused;
    operands[size_t(i) + 1] = given ? &call.in[i] : &none;
  }
  const auto walk = walk_of<all_operands>(call.out.layout->shape, operands);
  const std::optional<DType> dtype = pack_dtype(call, operands, walk);
  if (dtype && k.packs[size_t(*dtype)]) return run_packs(*this, call, operands, walk.size[0], *dtype, k);

  const auto kernel = k.strided[size_t(call.compute)];
  if (!kernel)
    throw Error(Error::Kind::internal, call.op->name, "no GPU kernel computes in " + std::string(name(call.compute)));
  StridedCall s{};
  s.out_dtype = call.out.dtype;
  Addresses<all_operands> data{call.out.data};
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& x = call.in[i];
    s.dtype[i] = x.dtype;
    data[size_t(i) + 1] = operands[size_t(i) + 1]->data;
    if (!x.layout && !x.unused) s.scalar[i] = scalar_bits(x.scalar, is_condition(call, i) ? boolean : call.compute);
  }
  in_chunks(walk, data, [&](const Strided<all_operands>& chunk) {
    s.operands = chunk;
    launch(*this, call.op->name, kernel, blocks_for(chunk.n, threads * k.strided_per_thread), threads, s);
  });
}

}  // namespace volta::cuda
