// The CPU as a backend.
#include <cstring>

#include "backend/attention.h"
#include "backend/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cross_entropy.h"
#include "backend/norm.h"
#include "backend/pool.h"
#include "backend/profile.h"
#include "backend/recurrent.h"
#include "backend/update.h"

namespace volta {
namespace {

class CpuBackend final : public Backend {
  IntrusivePtr<Storage> allocate(int64_t bytes, Device, const char* op) override { return host_storage(bytes, op); }
  void copy(const Arg& out, const Arg& in) override { cpu::copy(out, in); }
  void elementwise(const ElementwiseCall& call) override { cpu::elementwise(call); }
  void reduce(const ReduceCall& call) override { cpu::reduce(call); }
  void softmax(const SoftmaxCall& call) override { cpu::softmax(call); }
  void softmax_backward(const SoftmaxBackwardCall& call) override { cpu::softmax_backward(call); }
  void scan(const ScanCall& call) override { cpu::scan(call); }
  void gather(const GatherCall& call) override { cpu::gather(call); }
  void scatter(const ScatterCall& call) override { cpu::scatter(call); }
  void sort(const SortCall& call) override { cpu::sort(call); }
  void search(const SearchCall& call) override { cpu::search(call); }
  void random(const RandomCall& call) override { cpu::fill_random(call); }
  void iota(const Arg& out, Scalar start, Scalar step) override { cpu::iota(out, start, step); }
  void matmul(const MatmulCall& call) override { cpu::matmul(call); }
  void upload(void* device, const void* host, int64_t bytes) override { std::memcpy(device, host, size_t(bytes)); }
  void download(void* host, const void* device, int64_t bytes) override { std::memcpy(host, device, size_t(bytes)); }

  bool knows_indices() const override { return true; }
  std::optional<IndexRange> index_range(const Arg& index) const override { return cpu::index_range(index); }
  bool offers(const ElementwiseOp&) const override { return true; }
  bool offers(const ConvCall&) const override { return true; }
  bool offers(const PoolCall& call) const override { return cpu::offers_pool(call); }
  bool offers(const NormCall& call) const override { return !is_half(call.x.dtype); }
  bool offers(const AttentionCall&) const override { return true; }
  bool offers(const RecurrentCall& call) const override { return !is_half(call.dtype); }
  bool offers(const CrossEntropyCall& call) const override { return cpu::offers_cross_entropy(call); }
  bool offers(const UpdateCall& call) const override { return !call.skip && !call.skipped; }
  bool offers(const PositionsCall&) const override { return true; }
  ConvAlgorithm algorithm(const ConvCall& call) const override { return cpu::chosen_algorithm(call); }
  bool fuses_inputs(const RecurrentCall& call) const override { return cpu::fuses_inputs(call); }
  void conv(const ConvCall& call) override { cpu::conv(call); }
  IntrusivePtr<Storage> keep(ConvCall& call) override { return cpu::keep_weights(call); }
  void pool(const PoolCall& call) override { cpu::pool(call); }
  void pool_backward(const PoolBackwardCall& call) override { cpu::pool_backward(call); }
  void norm(const NormCall& call) override { cpu::norm(call); }
  void norm_backward(const NormBackwardCall& call) override { cpu::norm_backward(call); }
  void attention(const AttentionCall& call) override { cpu::attention(call); }
  void attention_backward(const AttentionBackwardCall& call) override { cpu::attention_backward(call); }
  void recurrent(const RecurrentCall& call) override { cpu::recurrent(call); }
  void recurrent_backward(const RecurrentBackwardCall& call) override { cpu::recurrent_backward(call); }
  void cross_entropy(const CrossEntropyCall& call) override { cpu::cross_entropy(call); }
  void cross_entropy_backward(const CrossEntropyBackwardCall& call) override { cpu::cross_entropy_backward(call); }
  void update(const UpdateCall& call) override { cpu::update(call); }
  void positions(const PositionsCall& call) override { cpu::positions(call); }
};

// Never destroyed: tensors may outlive every static.
constinit union Instance {
  CpuBackend backend;
  constexpr Instance() : backend() {}
  ~Instance() {}
} instance;

}  // namespace

Backend& cpu_backend() { return instance.backend; }

constinit std::atomic<Backend*> cpu_in_use = &instance.backend;

}  // namespace volta
