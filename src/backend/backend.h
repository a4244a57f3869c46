// Backend: the dozen kinds of loop a device must offer, each described by a plain struct.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <volta/conv_algorithm.h>
#include <volta/op_traits.h>
#include <volta/operand.h>

#include "core/layout.h"
#include "core/random_call.h"
#include "core/storage.h"
#include "math/inner.h"

namespace volta {

// Strided typed memory on the backend's device; `data` is the address of the first element. Without a layout it is the
// number in `scalar`.
struct Arg {
  void* data = nullptr;
  const Layout* layout = nullptr;
  DType dtype = f32;
  Scalar scalar;
  bool unused = false;  // an operand the kernel does not read
};

// out = op(in…) elementwise in dtype `compute`; operands broadcast (right-aligned) to the shape of `out`.
struct ElementwiseCall {
  const ElementwiseOp* op;
  int kernel;  // 0: the formula; 1 + i: g times its derivative by operand i, called with (g, operands…, output)
  DType compute;
  Arg out;
  Arg in[ElementwiseOp::max_arity + 2];
  int inputs;
};

// Reductions. `out` has the rank of `in`, with size 1 where `reduced` has its bit set.
struct ReduceCall {
  int reducer;       // in Reducers
  DType compute;     // of the accumulation: f32 for halves, f64, i64 …
  Arg out, indices;  // indices (i64): of a reducer that is indexed; either may be without data
  Arg in;
  uint32_t reduced;  // bit per axis
  double parameter;  // of the reducer
};

// Softmax or its logarithm along one axis.
struct SoftmaxCall {
  bool log;
  Arg out, in;
  int axis;
};
struct SoftmaxBackwardCall {
  bool log;
  Arg out, grad, result;  // result: of the forward call
  int axis;
};

struct ScanCall {
  int reducer;       // in Scans
  Arg out, indices;  // indices (i64): of a reducer that is indexed
  Arg in;
  int axis;
  bool reverse;
};

// out[i, j, k] = in[index[i, j, k], j, k] for axis 0; out and in have one dtype, and `in` may be larger than `out` along
// the other axes. The index is i64, has the shape of `out`, often with stride 0 (whole rows are then copied), and lies in
// [-size, size) of the axis: the loop adds the size to negative ones. On the CPU that range was checked before; a device
// that cannot be asked without waiting checks in its loop, clamps, and reports at the next synchronisation.
struct GatherCall {
  Arg out, in, index;
  int axis;
};

// out[index[i, j, k], j, k] (op)= src[i, j, k] for axis 0; out and src have one dtype, src and index one shape (either may
// have stride 0), and `out` may be larger along the other axes. Indices as for gather. Where several values meet, `set`
// keeps the last along the axis, and on the CPU the others combine in that order.
enum class Combine : uint8_t { set, add, multiply, max, min };
struct ScatterCall {
  Combine combine;
  Arg out, src, index;
  int axis;
};

// Along `axis`, values and indices hold positions [begin, begin + their size) of the sorted order: the whole of it, or the
// part that topk and kthvalue want. Stable also when descending; NaN is the largest.
struct SortCall {
  Arg values, indices;  // either may be without data; indices are i64
  Arg in;
  int axis;
  bool descending;
  int64_t begin = 0;
};

// out (i64) = how many elements of the sorted row are < value (or <= when `right`). `values` has the shape of `out`, of rank
// 1 or more; `sorted` that shape but for its last axis, often with stride 0. NaN is the largest.
struct SearchCall {
  Arg out, sorted, values;
  bool right;
};

// c = a @ b over broadcast batch axes, optionally + bias per column and an activation.
enum class Fused : uint8_t { none, relu, gelu, gelu_tanh, silu, tanh, sigmoid };
struct MatmulCall {
  Arg out, a, b;  // all of equal rank >= 2, batch axes broadcast with stride 0
  Arg bias;       // data null: none
  Fused activation = Fused::none;
  bool accumulate = false;
};

// Smallest and largest of indices.
struct IndexRange {
  int64_t low, high;
};

// The positions of the true elements of a mask (contiguous bytes, true when not 0), ascending, are written where
// `place(their number)` points, as i64.
struct PositionsCall {
  Arg mask;
  std::function<int64_t*(int64_t count)> place;
};

// Further loops, described in headers of their own beside this one.
struct ConvCall;
struct PoolCall;
struct PoolBackwardCall;
struct NormCall;
struct NormBackwardCall;
struct AttentionCall;
struct AttentionBackwardCall;
struct RecurrentCall;
struct RecurrentBackwardCall;
struct CrossEntropyCall;
struct CrossEntropyBackwardCall;
struct DropoutCall;
struct UpdateCall;
class Recording;

// Work that a device carries out again without being told again.
class Recorded {
 public:
  virtual ~Recorded() = default;
  virtual void replay() = 0;  // with the numbers that the recording holds now
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* op) = 0;
  // Memory of the host, from which the device copies fastest.
  virtual IntrusivePtr<Storage> host_memory(int64_t bytes, const char* op) { return host_storage(bytes, op); }
  virtual void copy(const Arg& out, const Arg& in) = 0;  // same device, same shape, any dtypes and strides
  virtual void elementwise(const ElementwiseCall& call) = 0;
  virtual void reduce(const ReduceCall& call) = 0;
  virtual void softmax(const SoftmaxCall& call) = 0;
  virtual void softmax_backward(const SoftmaxBackwardCall& call) = 0;
  virtual void scan(const ScanCall& call) = 0;
  virtual void gather(const GatherCall& call) = 0;
  virtual void scatter(const ScatterCall& call) = 0;
  virtual void sort(const SortCall& call) = 0;
  virtual void search(const SearchCall& call) = 0;
  virtual void random(const RandomCall& call) = 0;  // contiguous output
  // out[i] = start + i * step for a vector of any stride; floats are computed in f64, integers in i64 (wrapping).
  virtual void iota(const Arg& out, Scalar start, Scalar step) = 0;
  virtual void matmul(const MatmulCall& call) = 0;
  // Between the host and this device; contiguous bytes, complete when it returns.
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void read(void* host, const void* device, int64_t bytes) { download(host, device, bytes); }  // one element

  // What a device may know and have besides. Ops ask whether it offers a call, whose outputs may then be without data, and
  // are composed of the loops above where it does not (ops/fused.h). Where a forward loop is offered, so is its backward.
  virtual bool knows_indices() const { return false; }  // index_range answers, without waiting
  virtual std::optional<IndexRange> index_range(const Arg&) const { return {}; }
  virtual bool repeats_bits() const { return true; }  // sums do not depend on the order in which threads meet
  // Convolution, pooling and batch norm take operands with their channels closest together as they are.
  virtual bool takes_channels_last() const { return false; }
  // Users' ops have rows for the host alone.
  virtual bool offers(const ElementwiseOp& op) const { return op.index >= 0; }
  virtual bool offers(const ConvCall&) const { return false; }
  virtual bool offers(const PoolCall&) const { return false; }
  virtual bool offers(const NormCall&) const { return false; }
  virtual bool offers(const AttentionCall&) const { return false; }
  virtual bool offers(const RecurrentCall&) const { return false; }
  virtual bool offers(const CrossEntropyCall&) const { return false; }
  virtual bool offers(const DropoutCall&) const { return false; }
  virtual bool offers(const UpdateCall&) const { return false; }
  virtual bool offers(const PositionsCall&) const { return false; }
  virtual ConvAlgorithm algorithm(const ConvCall&) const { return ConvAlgorithm::direct; }
  // Whether its loop had better multiply the inputs too.
  virtual bool fuses_inputs(const RecurrentCall&) const { return false; }
  virtual void conv(const ConvCall&) {}
  // For a forward call that is made often with the same weights: these in the form that suits it best, and the algorithm that
  // takes them so. Or nothing, if that is the form they have.
  virtual IntrusivePtr<Storage> keep(ConvCall&) { return {}; }
  virtual void pool(const PoolCall&) {}
  virtual void pool_backward(const PoolBackwardCall&) {}
  virtual void norm(const NormCall&) {}
  virtual void norm_backward(const NormBackwardCall&) {}
  virtual void attention(const AttentionCall&) {}
  virtual void attention_backward(const AttentionBackwardCall&) {}
  virtual void recurrent(const RecurrentCall&) {}
  virtual void recurrent_backward(const RecurrentBackwardCall&) {}
  virtual void cross_entropy(const CrossEntropyCall&) {}
  virtual void cross_entropy_backward(const CrossEntropyBackwardCall&) {}
  virtual void dropout(const DropoutCall&) {}
  virtual void update(const UpdateCall&) {}
  virtual void positions(const PositionsCall&) {}
  // Runs f, whose uploads do not wait for other work of the device, and returns when they are done.
  virtual void aside(const std::function<void()>& f) { f(); }
  // Records what `step` asks for, without carrying it out. The recording lives longer than what is returned.
  virtual bool records() const { return false; }
  virtual std::unique_ptr<Recorded> record(Recording&, const std::function<void()>&) { return nullptr; }
};

Backend& backend(Device device);  // throws Error::Kind::device, naming the device, when there is none
Backend& cpu_backend();

// Adds a device: Device("name") and Device("name:2") then lead to find(index), which throws where there is no such one.
DeviceType register_device(const char* name, Backend& (*find)(int index));

}  // namespace volta
