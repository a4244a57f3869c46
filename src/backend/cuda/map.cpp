// Pointwise loops on the GPU: picks the kernel of an op and describes the operands to it.
#include "backend/cuda/map.h"

#include <cstring>

#include "backend/cuda/loops.h"
#include "ops/point.h"

namespace volta::cuda {

template <int Part> const MapKernels* map_part(int op, int kernel);

namespace {

constexpr int kernels = 4;
using MapWalk = Walk<max_inputs + 1>;
using Table = std::array<std::array<const MapKernels*, kernels>, size_t(PointOps::size)>;

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

MapWalk make_walk(const MapCall& call) {
  MapWalk walk;
  const Layout& out = *call.out.layout;
  for (int axis = 0; axis < out.rank(); ++axis) {
    int64_t strides[max_inputs + 1] = {out.strides[axis] * size_of(call.out.dtype)};
    for (int i = 0; i < call.inputs; ++i)
      if (const Arg& a = call.in[i]; a.layout && !a.unused)
        strides[i + 1] = broadcast_stride(*a.layout, axis, out.rank()) * size_of(a.dtype);
    walk.add_axis(out.shape[axis], strides);
  }
  walk.finish();
  return walk;
}

bool aligned(const void* data, int64_t to) { return reinterpret_cast<uintptr_t>(data) % uintptr_t(to) == 0; }

// Whether the operands are contiguous, aligned and of one dtype that has pack kernels.
bool packs(const MapCall& call, const MapWalk& walk, const MapKernels& k, DType& dtype) {
  if (call.compute != f32 || walk.rank != 1 || walk.size[0] < 4) return false;
  const bool truth = call.op->truth && call.kernel == 0;
  dtype = call.out.dtype;
  if (truth) {
    if (call.out.dtype != boolean) return false;
    for (int i = 0; i < call.inputs; ++i)
      if (call.in[i].layout && !call.in[i].unused && !is_condition(call, i)) dtype = call.in[i].dtype;
  }
  if (!(dtype == f16 || dtype == bf16 || dtype == f32) || !k.packs[size_t(dtype)]) return false;
  if (walk.stride[0][0] != size_of(call.out.dtype) || !aligned(call.out.data, 16)) return false;
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& a = call.in[i];
    if (!a.layout || a.unused) {
      if (is_condition(call, i) && !a.unused) return false;
      continue;
    }
    if (a.dtype != (is_condition(call, i) ? boolean : dtype)) return false;
    if (walk.stride[0][i + 1] != size_of(a.dtype) || !aligned(a.data, 16)) return false;
  }
  return true;
}

void run_packs(Context& c, const MapCall& call, int64_t n, DType dtype, const MapKernels& k) {
  PackCall p{n, call.out.data, {}, {}};
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& a = call.in[i];
    if (a.unused) continue;
    if (a.layout) p.in[i] = a.data;
    else p.scalar[i] = a.scalar.as<float>();
  }
  const int64_t each = map_threads * k.packs_per_thread * (16 / size_of(dtype));
  launch(c, call.op->name, k.packs[size_t(dtype)], blocks_for(n, each), map_threads, p);
}

uint64_t scalar_bits(const Scalar& scalar, DType dtype) {
  return visit(dtype, [&]<class T>(TypeTag<T>) {
    const T value = scalar.as<T>();
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  });
}

void run_strided(Context& c, const MapCall& call, const MapWalk& walk, const MapKernels& k) {
  const StridedKernel kernel = k.strided[size_t(call.compute)];
  if (!kernel)
    throw Error(Error::Kind::internal, call.op->name, "no GPU kernel computes in " + std::string(name(call.compute)));
  StridedCall s{};
  s.out_dtype = call.out.dtype;
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& a = call.in[i];
    s.dtype[i] = a.dtype;
    if (!a.layout && !a.unused) s.scalar[i] = scalar_bits(a.scalar, is_condition(call, i) ? boolean : call.compute);
  }
  in_chunks(walk, [&](const Strided<max_inputs + 1>& geometry, const auto& base) {
    s.geometry = geometry;
    s.out = static_cast<char*>(call.out.data) + base[0];
    for (int i = 0; i < call.inputs; ++i)
      if (call.in[i].layout && !call.in[i].unused)
        s.in[i] = static_cast<const char*>(call.in[i].data) + base[size_t(i) + 1];
    launch(c, call.op->name, kernel, blocks_for(geometry.n, map_threads * k.strided_per_thread), map_threads, s);
  });
}

}  // namespace

const MapKernels* map_kernels(int op, int kernel) {
  static const Table table = make_table(std::make_index_sequence<map_parts>());
  return table[size_t(op)][size_t(kernel)];
}

void map(Context& c, const MapCall& call) {
  if (call.out.layout->numel() == 0) return;
  if (call.op->index < 0) throw Error(Error::Kind::internal, call.op->name, "a user's op has no GPU kernel");
  const MapKernels& k = *map_kernels(call.op->index, call.kernel);
  const MapWalk walk = make_walk(call);
  DType dtype = f32;
  if (packs(call, walk, k, dtype)) run_packs(c, call, walk.size[0], dtype, k);
  else run_strided(c, call, walk, k);
}

}  // namespace volta::cuda
