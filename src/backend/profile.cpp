// How calls of a backend are timed, and what they are called.
#include "backend/profile.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backend/attention.h"
#include "backend/conv.h"
#include "backend/cross_entropy.h"
#include "backend/dropout.h"
#include "backend/norm.h"
#include "backend/pool.h"
#include "backend/recurrent.h"
#include "backend/update.h"
#include "core/fork.h"
#include "core/profile.h"
#include "math/reducers.h"

namespace volta {
namespace {

template <class R> constexpr const char* reducer_name() {
  using namespace reducers;
  if constexpr (requires { R::name; }) return R::name;
  else if constexpr (std::is_same_v<R, Sum>) return "sum";
  else if constexpr (std::is_same_v<R, Mean>) return "mean";
  else if constexpr (std::is_same_v<R, Prod>) return "prod";
  else if constexpr (std::is_same_v<R, Max>) return "amax";
  else if constexpr (std::is_same_v<R, Min>) return "amin";
  else if constexpr (std::is_same_v<R, FirstMax> || std::is_same_v<R, LastMax>) return "max";
  else if constexpr (std::is_same_v<R, FirstMin> || std::is_same_v<R, LastMin>) return "min";
  else if constexpr (std::is_same_v<R, CountNonzero>) return "count_nonzero";
  else if constexpr (std::is_same_v<R, Var>) return "var";
  else return "norm_sum";  // squares, absolute values and powers
}
template <class... R> constexpr auto names_of(List<R...>) { return std::array{reducer_name<R>()...}; }

std::string named(const ElementwiseCall& c) { return std::string(c.op->name) + (c.kernel > 0 ? "_backward" : ""); }
std::string named(const ReduceCall& c) {
  static constexpr auto names = names_of(Reducers());
  return names[size_t(c.reducer)];
}
std::string named(const ScanCall& c) {
  static constexpr auto names = names_of(Scans());
  return "cum" + std::string(names[size_t(c.reducer)]);
}
std::string named(const ConvCall& c) {
  static constexpr std::array names = {"conv", "conv_input", "conv_weight"};
  return names[size_t(c.piece)];
}
std::string named(Cell cell) {
  static constexpr std::array names = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
  return names[size_t(cell)];
}

class ProfilingBackend final : public Backend {
 public:
  constexpr explicit ProfilingBackend(Device device) : device_(device) {}

  IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* op) override {
    IntrusivePtr<Storage> storage = own().allocate(bytes, device, op);
    profile::note_allocation(op, device, bytes, memory_in_use(device));
    return storage;
  }
  IntrusivePtr<Storage> host_memory(int64_t bytes, const char* op) override { return own().host_memory(bytes, op); }
  void copy(const Arg& out, const Arg& in) override {
    const bool fill = !in.layout;
    timed(fill ? "fill" : out.dtype == in.dtype ? "copy" : "cast", [&] { own().copy(out, in); });
  }
  void elementwise(const ElementwiseCall& c) override {
    timed(named(c), [&] { own().elementwise(c); });
  }
  void reduce(const ReduceCall& c) override {
    timed(named(c), [&] { own().reduce(c); });
  }
  void softmax(const SoftmaxCall& c) override {
    timed(c.log ? "log_softmax" : "softmax", [&] { own().softmax(c); });
  }
  void softmax_backward(const SoftmaxBackwardCall& c) override {
    timed(c.log ? "log_softmax_backward" : "softmax_backward", [&] { own().softmax_backward(c); });
  }
  void scan(const ScanCall& c) override {
    timed(named(c), [&] { own().scan(c); });
  }
  void gather(const GatherCall& c) override {
    timed("gather", [&] { own().gather(c); });
  }
  void scatter(const ScatterCall& c) override {
    timed("scatter", [&] { own().scatter(c); });
  }
  void sort(const SortCall& c) override {
    timed("sort", [&] { own().sort(c); });
  }
  void search(const SearchCall& c) override {
    timed("search", [&] { own().search(c); });
  }
  void random(const RandomCall& c) override {
    timed(name(c.kind), [&] { own().random(c); });
  }
  void iota(const Arg& out, Scalar start, Scalar step) override {
    timed("iota", [&] { own().iota(out, start, step); });
  }
  void matmul(const MatmulCall& c) override {
    timed("matmul", [&] { own().matmul(c); });
  }
  void upload(void* device, const void* host, int64_t bytes) override {
    timed("upload", [&] { own().upload(device, host, bytes); });
  }
  void download(void* host, const void* device, int64_t bytes) override {
    timed("download", [&] { own().download(host, device, bytes); });
  }

  void read(void* host, const void* device, int64_t bytes) override {
    timed("item", [&] { own().read(host, device, bytes); });
  }

  bool knows_indices() const override { return own().knows_indices(); }
  std::optional<IndexRange> index_range(const Arg& index) const override {
    if (!own().knows_indices()) return own().index_range(index);
    std::optional<IndexRange> range;
    timed("index_range", [&] { range = own().index_range(index); });
    return range;
  }
  bool repeats_bits() const override { return own().repeats_bits(); }
  bool takes_channels_last() const override { return own().takes_channels_last(); }
  void aside(const std::function<void()>& f) override { own().aside(f); }
  bool offers(const ElementwiseOp& op) const override { return own().offers(op); }
  bool offers(const ConvCall& c) const override { return own().offers(c); }
  bool offers(const PoolCall& c) const override { return own().offers(c); }
  bool offers(const NormCall& c) const override { return own().offers(c); }
  bool offers(const AttentionCall& c) const override { return own().offers(c); }
  bool offers(const RecurrentCall& c) const override { return own().offers(c); }
  bool offers(const CrossEntropyCall& c) const override { return own().offers(c); }
  bool offers(const DropoutCall& c) const override { return own().offers(c); }
  bool offers(const UpdateCall& c) const override { return own().offers(c); }
  bool offers(const PositionsCall& c) const override { return own().offers(c); }
  ConvAlgorithm algorithm(const ConvCall& c) const override { return own().algorithm(c); }
  bool fuses_inputs(const RecurrentCall& c) const override { return own().fuses_inputs(c); }
  IntrusivePtr<Storage> keep(ConvCall& c) override { return own().keep(c); }
  void conv(const ConvCall& c) override {
    timed(named(c), [&] { own().conv(c); });
  }
  void pool(const PoolCall& c) override {
    timed(c.pool == Pool::max ? "max_pool" : "sum_pool", [&] { own().pool(c); });
  }
  void pool_backward(const PoolBackwardCall& c) override {
    timed(c.pool == Pool::max ? "max_pool_backward" : "sum_pool_backward", [&] { own().pool_backward(c); });
  }
  void norm(const NormCall& c) override {
    timed("norm", [&] { own().norm(c); });
  }
  void norm_backward(const NormBackwardCall& c) override {
    timed("norm_backward", [&] { own().norm_backward(c); });
  }
  void attention(const AttentionCall& c) override {
    timed("attention", [&] { own().attention(c); });
  }
  void attention_backward(const AttentionBackwardCall& c) override {
    timed("attention_backward", [&] { own().attention_backward(c); });
  }
  void recurrent(const RecurrentCall& c) override {
    timed(named(c.cell), [&] { own().recurrent(c); });
  }
  void recurrent_backward(const RecurrentBackwardCall& c) override {
    timed(named(c.cell) + "_backward", [&] { own().recurrent_backward(c); });
  }
  void cross_entropy(const CrossEntropyCall& c) override {
    timed("cross_entropy", [&] { own().cross_entropy(c); });
  }
  void cross_entropy_backward(const CrossEntropyBackwardCall& c) override {
    timed("cross_entropy_backward", [&] { own().cross_entropy_backward(c); });
  }
  void dropout(const DropoutCall& c) override {
    timed("dropout", [&] { own().dropout(c); });
  }
  void update(const UpdateCall& c) override {
    timed("update_" + std::string(c.rule->name), [&] { own().update(c); });
  }
  void positions(const PositionsCall& c) override {
    timed("positions", [&] { own().positions(c); });
  }

 private:
  template <class F> void timed(std::string_view name, F f) const {
    const profile::Region region(profile::Kind::op, name, device_);
    f();
    if (profile::waits() && device_.is_cuda()) cuda::synchronize(device_.index);
  }
  Backend& own() const { return own_backend(device_); }
  Device device_;
};

// Made before any thread and never destroyed, so that relaxed loads of a pointer to it are enough.
union CpuInstance {
  constexpr CpuInstance() : backend(Device()) {}
  ~CpuInstance() {}
  ProfilingBackend backend;
};
constinit CpuInstance profiled_cpu;

constinit std::mutex mutex;
[[maybe_unused]] const bool forks_wait = fork_waits_for(mutex);

// Who stands for the CPU's backend, for how many; and whether somebody profiles. Under the mutex.
constinit Backend* stand_in = nullptr;
constinit int stood_for = 0;
constinit bool timed = false;
void choose_cpu() {
  Backend* const plain = timed ? &profiled_cpu.backend : &cpu_backend();
  cpu_in_use.store(stood_for > 0 ? stand_in : plain, std::memory_order_relaxed);
}

}  // namespace

void time_backends(bool on) {
  const std::lock_guard lock(mutex);
  timed = on;
  choose_cpu();
}

void stand_for_cpu(Backend* other) {
  const std::lock_guard lock(mutex);
  if (other) stand_in = other;
  stood_for += other ? 1 : -1;
  choose_cpu();
}

Backend& profiled_backend(Device device) {
  static auto& made = *new std::map<std::pair<DeviceType, int>, std::unique_ptr<ProfilingBackend>>;  // never destroyed
  if (device.is_cpu()) return profiled_cpu.backend;
  own_backend(device);  // throws where there is no such device
  const std::lock_guard lock(mutex);
  auto& place = made[{device.type, device.index}];
  if (!place) place = std::make_unique<ProfilingBackend>(device);
  return *place;
}

int64_t memory_in_use(Device device) {
  if (device.is_cpu()) return memory::stats().in_use;
  return device.is_cuda() ? cuda::memory_stats(device.index).in_use : 0;
}

}  // namespace volta
