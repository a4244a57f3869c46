// The CPU's backend while programs are recorded: what a thread asks for in the meantime is done and written down.
#include <algorithm>
#include <cstring>

#include "backend/cross_entropy.h"
#include "backend/dropout.h"
#include "backend/profile.h"
#include "backend/update.h"
#include "core/check.h"
#include "core/profile.h"
#include "core/recording.h"
#include "core/watch.h"
#include "ops/optimize/program.h"

namespace volta::program {
namespace {

constexpr const char* op = "optimize";

Backend& own() { return profile::on() ? profiled_backend(Device()) : own_backend(Device()); }

template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) {
  throw_error(ErrorKind::argument, op, parts...);
}

class Recorder final : public MemoryWatch {
 public:
  Recorder(Trace& trace, std::span<const Tensor> inputs) : trace_(trace), outer_(std::exchange(memory_watch, this)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto& memory = trace.add(Trace::Kind::input, inputs[i].impl().storage);
      memory.input = int(i), memory.known = false;
    }
    current = this;
  }
  ~Recorder() {
    current = nullptr;
    memory_watch = outer_;
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  static thread_local constinit Recorder* current;

  void made(const Storage&) override {}
  void read(const Tensor& x) override {
    const auto& storage = x.impl().storage;
    if (!storage->device.is_cpu() || storage->bytes == 0) return;
    const Trace::Memory* memory = trace_.find(storage->data);
    if (!memory) memory = &trace_.add(Trace::Kind::constant, storage);
    if (memory->kind == Trace::Kind::constant)
      trace_.sources.try_emplace(&x.impl(), Trace::Source{x, storage, storage->version.load()});
  }
  void viewed(const Tensor& x) override { read(x); }
  void shown(const Tensor& x) override {
    read(x);
    if (Trace::Memory* memory = trace_.find(x.impl().storage->data)) show(*memory);
  }

  void made(const IntrusivePtr<Storage>& storage) {
    if (storage->bytes > 0) trace_.add(Trace::Kind::made, storage);
  }
  // The host writes into memory, or asks for what lies there.
  void written(const void* to, const void* bytes, int64_t n) {
    Trace::Memory& memory = checked(to);
    if (memory.kind != Trace::Kind::made) refuse_write(memory);
    if (memory.known) memory.touched = true;
    else {
      auto copy = host_storage(n, op);
      std::memcpy(copy->data, bytes, size_t(n));
      restore(memory, const_cast<void*>(to), std::move(copy));
    }
  }
  void asked(const void* from) { show(checked(from)); }

  void take(Call call) {
    bool known = true;
    each_operand(call, [&](Arg& a, bool, bool writes) {
      const Trace::Memory& memory = checked(a.data);
      known = known && memory.known;
      if (writes && memory.kind != Trace::Kind::made) refuse_write(memory);
    });
    each_operand(call, [&](Arg& a, bool, bool writes) {
      Trace::Memory& memory = trace_.at(a);
      if (!writes || !memory.known) return;
      if (!known && memory.touched) snapshot(memory);
      memory.known = known;
      memory.touched = true;
    });
    check_places(own(), call);
    run(own(), call);
    if (known) return;
    keep(call);
    trace_.calls.push_back(call);
  }

 private:
  Trace::Memory& checked(const void* address) {
    Trace::Memory* memory = trace_.find(address);
    if (!memory) refuse("the model uses memory of another thread; its call must stay on the thread that it is made on");
    return *memory;
  }
  [[noreturn]] static void refuse_write(const Trace::Memory& memory) {
    if (memory.kind == Trace::Kind::input) refuse("the model writes into its input");
    refuse("the model writes into a tensor that it keeps, as batch norm does in training mode; call eval(model) first");
  }
  static void show(Trace::Memory& memory) {
    if (!memory.known)
      refuse(
          "the model looks at elements that depend on its input (item(), to_vector(), data(), a condition), so that "
          "its next call may take another way");
    memory.touched = true;
  }
  // From here on the memory's numbers depend on the inputs: those that it has are put there at every run.
  void snapshot(Trace::Memory& memory) {
    auto copy = host_storage(memory.storage->bytes, op);
    std::memcpy(copy->data, memory.storage->data, size_t(memory.storage->bytes));
    restore(memory, memory.storage->data, std::move(copy));
  }
  void restore(Trace::Memory&, void* to, IntrusivePtr<Storage> from) {
    const Layout* bytes = trace_.keep(Layout::contiguous({from->bytes}));
    void* const data = from->data;
    trace_.add(Trace::Kind::constant, std::move(from));
    trace_.calls.emplace_back(CopyCall{{to, bytes, u8, {}}, {data, bytes, u8, {}}});
  }

  // What the op's own variables hold.
  void keep(Call& call) {
    each_arg(call, [&](Arg& a, bool, bool) {
      if (a.layout) a.layout = trace_.keep(*a.layout);
    });
    if (auto* pool = std::get_if<PoolCall>(&call))
      for (PoolAxis& a : pool->axis) {
        a.index = table(trace_.places, a.index, a.taps * a.out);
        a.weight = table(trace_.factors, a.weight, a.taps * a.out);
        a.divisor = table(trace_.factors, a.divisor, a.out);
      }
    if (auto* recurrent = std::get_if<RecurrentCall>(&call))
      recurrent->lengths = table(trace_.places, recurrent->lengths, recurrent->batch);
  }
  template <class T> static const T* table(std::deque<std::vector<T>>& tables, const T* from, int64_t n) {
    return from ? tables.emplace_back(from, from + n).data() : nullptr;
  }

  Trace& trace_;
  MemoryWatch* outer_;
};
thread_local constinit Recorder* Recorder::current = nullptr;

// In the place of the CPU's backend while any thread records; other threads pass.
class RecordingBackend final : public Backend {
 public:
  IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* who) override {
    IntrusivePtr<Storage> storage = own().allocate(bytes, device, who);
    if (Recorder* r = Recorder::current) r->made(storage);
    return storage;
  }
  IntrusivePtr<Storage> host_memory(int64_t bytes, const char* who) override { return allocate(bytes, Device(), who); }
  void copy(const Arg& out, const Arg& in) override { take(CopyCall{out, in}); }
  void iota(const Arg& out, Scalar start, Scalar step) override { take(IotaCall{out, start, step}); }
  void elementwise(const ElementwiseCall& c) override { take(c); }
  void reduce(const ReduceCall& c) override { take(c); }
  void softmax(const SoftmaxCall& c) override { take(c); }
  void scan(const ScanCall& c) override { take(c); }
  void gather(const GatherCall& c) override { take(c); }
  void scatter(const ScatterCall& c) override { take(c); }
  void sort(const SortCall& c) override { take(c); }
  void search(const SearchCall& c) override { take(c); }
  void matmul(const MatmulCall& c) override { take(c); }
  void conv(const ConvCall& c) override { take(c); }
  void pool(const PoolCall& c) override { take(c); }
  void norm(const NormCall& c) override { take(c); }
  void attention(const AttentionCall& c) override {
    if (c.dropout > 0) refuse_random();
    take(c);
  }
  void recurrent(const RecurrentCall& c) override { take(c); }
  void upload(void* to, const void* from, int64_t bytes) override {
    if (Recorder* r = Recorder::current) r->written(to, from, bytes);
    own().upload(to, from, bytes);
  }
  void download(void* to, const void* from, int64_t bytes) override {
    if (Recorder* r = Recorder::current) r->asked(from);
    own().download(to, from, bytes);
  }
  void read(void* to, const void* from, int64_t bytes) override {
    if (Recorder* r = Recorder::current) r->asked(from);
    own().read(to, from, bytes);
  }

  // What a program does not know.
  void random(const RandomCall& c) override { refuse_random(), own().random(c); }
  void positions(const PositionsCall& c) override { own().positions(c); }
  void softmax_backward(const SoftmaxBackwardCall& c) override { refuse_training(), own().softmax_backward(c); }
  void pool_backward(const PoolBackwardCall& c) override { refuse_training(), own().pool_backward(c); }
  void norm_backward(const NormBackwardCall& c) override { refuse_training(), own().norm_backward(c); }
  void attention_backward(const AttentionBackwardCall& c) override { refuse_training(), own().attention_backward(c); }
  void recurrent_backward(const RecurrentBackwardCall& c) override { refuse_training(), own().recurrent_backward(c); }
  void cross_entropy(const CrossEntropyCall& c) override { refuse_training(), own().cross_entropy(c); }
  void cross_entropy_backward(const CrossEntropyBackwardCall& c) override {
    refuse_training(), own().cross_entropy_backward(c);
  }
  void dropout(const DropoutCall& c) override { refuse_random(), own().dropout(c); }
  void update(const UpdateCall& c) override { refuse_training(), own().update(c); }

  // Indices are checked when the calls are made.
  bool knows_indices() const override { return !Recorder::current && own().knows_indices(); }
  std::optional<IndexRange> index_range(const Arg& index) const override {
    if (Recorder::current) return {};
    return own().index_range(index);
  }
  bool repeats_bits() const override { return own().repeats_bits(); }
  bool takes_channels_last() const override { return own().takes_channels_last(); }
  void aside(const std::function<void()>& f) override { own().aside(f); }
  bool offers(const ElementwiseOp& c) const override { return own().offers(c); }
  bool offers(const ConvCall& c) const override { return own().offers(c); }
  bool offers(const PoolCall& c) const override { return own().offers(c); }
  bool offers(const NormCall& c) const override { return own().offers(c); }
  bool offers(const AttentionCall& c) const override { return own().offers(c); }
  bool offers(const RecurrentCall& c) const override { return own().offers(c); }
  bool offers(const CrossEntropyCall& c) const override { return !Recorder::current && own().offers(c); }
  bool offers(const DropoutCall& c) const override { return own().offers(c); }
  bool offers(const UpdateCall& c) const override { return own().offers(c); }
  // It says nothing of the memory that it writes; the composed form does.
  bool offers(const PositionsCall& c) const override { return !Recorder::current && own().offers(c); }
  ConvAlgorithm algorithm(const ConvCall& c) const override { return own().algorithm(c); }
  bool fuses_inputs(const RecurrentCall& c) const override { return own().fuses_inputs(c); }

 private:
  static void take(const Call& call) {
    if (Recorder* r = Recorder::current) r->take(call);
    else run(own(), call);
  }
  static void refuse_random() {
    if (Recorder::current)
      refuse("the model draws random numbers, as dropout does in training mode; call eval(model) first");
  }
  static void refuse_training() {
    if (Recorder::current) refuse("the model computes gradients or takes a step of an optimizer");
  }
};

// Never destroyed, as threads may still hold it.
union Instance {
  constexpr Instance() : backend() {}
  ~Instance() {}
  RecordingBackend backend;
};
constinit Instance instance;

class InFront {
 public:
  InFront() { stand_for_cpu(&instance.backend); }
  ~InFront() { stand_for_cpu(nullptr); }
  InFront(const InFront&) = delete;
  InFront& operator=(const InFront&) = delete;
};

}  // namespace

Trace::Memory* Trace::find(const void* address) {
  const char* const at = static_cast<const char*>(address);
  auto found = memories.upper_bound(at);
  if (found == memories.begin()) return nullptr;
  Memory& memory = (--found)->second;
  return at < found->first + memory.storage->bytes ? &memory : nullptr;
}

Trace::Memory& Trace::add(Kind kind, IntrusivePtr<Storage> storage) {
  const char* const begin = static_cast<const char*>(storage->data);
  return memories.insert_or_assign(begin, Memory{kind, std::move(storage)}).first->second;
}

Arg Trace::keep(const Tensor& x) {
  add(Kind::constant, x.impl().storage);
  return {address(x), keep(layout(x)), x.dtype(), {}};
}

bool is_recording() { return Recorder::current != nullptr; }

Trace record(std::vector<Tensor> inputs, const Function& f) {
  Trace trace;
  Recording devices;
  {
    const RecordingScope watched(&devices, Recording::Phase::watched);
    const InFront on;
    const Recorder recorder(trace, inputs);
    for (const Tensor& y : f(inputs)) {
      if (y.defined()) reads(y);  // a weight may be a result that no call touched
      trace.outputs.push_back(y.defined() ? alias(y, layout(y)) : Tensor());
    }
  }
  if (!devices.devices.empty())
    refuse("the model uses ", devices.devices[0], "; this is for the CPU, on a GPU capture() does it");
  inputs.clear();
  // Who else holds such memory is the model, for its next call.
  for (const auto& made : trace.memories) {
    const Trace::Memory& memory = made.second;
    const auto holds = [&](const Tensor& y) { return y.defined() && y.impl().storage == memory.storage; };
    const auto known_of = 1 + std::count_if(trace.outputs.begin(), trace.outputs.end(), holds);
    if (!memory.known && int64_t(memory.storage->refs.load()) > known_of)
      refuse("the model keeps a tensor that depends on its input, as one with a state or a cache does");
  }
  return trace;
}

}  // namespace volta::program
