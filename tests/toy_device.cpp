// A third device, "toy": host memory behind addresses that are not the host's, and the loops every device must have.
// It registers itself; nothing above the backend knows it. What it does not offer is composed.
#include "toy_device.h"

#include <cstring>

#include "backend/backend.h"
#include "core/recording.h"

namespace volta::test {
namespace {

ToyTraffic traffic;

class ToyBackend final : public Backend {
 public:
  static Backend& find(int index) {
    static ToyBackend* one = new ToyBackend;
    if (index > 0) throw Error(Error::Kind::device, "device", "there is one toy");
    return *one;
  }

 private:
  IntrusivePtr<Storage> allocate(int64_t bytes, Device device, const char* op) override {
    IntrusivePtr<Storage> storage = host_storage(bytes, op);
    storage->device = device;
    return storage;
  }
  void copy(const Arg& out, const Arg& in) override { host().copy(out, in); }
  void elementwise(const ElementwiseCall& call) override { host().elementwise(call); }
  void reduce(const ReduceCall& call) override { host().reduce(call); }
  void softmax(const SoftmaxCall& call) override { host().softmax(call); }
  void softmax_backward(const SoftmaxBackwardCall& call) override { host().softmax_backward(call); }
  void scan(const ScanCall& call) override { host().scan(call); }
  void gather(const GatherCall& call) override {
    check(call.index, call.in.layout->shape[call.axis], "gather");
    host().gather(call);
  }
  void scatter(const ScatterCall& call) override {
    check(call.index, call.out.layout->shape[call.axis], "scatter");
    host().scatter(call);
  }
  void sort(const SortCall& call) override { host().sort(call); }
  void search(const SearchCall& call) override { host().search(call); }
  void random(const RandomCall& call) override { host().random(call); }
  void iota(const Arg& out, Scalar start, Scalar step) override { host().iota(out, start, step); }
  void matmul(const MatmulCall& call) override { host().matmul(call); }
  void upload(void* device, const void* bytes, int64_t n) override {
    ++traffic.uploads;
    std::memcpy(device, bytes, size_t(n));
  }
  void download(void* bytes, const void* device, int64_t n) override {
    Recording::refuse("download", "it needs the host");
    ++traffic.downloads;
    std::memcpy(bytes, device, size_t(n));
  }
  void read(void* bytes, const void* device, int64_t n) override {
    Recording::refuse("item", "it needs the host");
    download(bytes, device, n);
  }
  // A recorder that carries out the step at once and counts its replays: the first is the recording.
  bool records() const override { return true; }
  std::unique_ptr<Recorded> record(Recording&, const std::function<void()>& step) override {
    struct Counted final : Recorded {
      void replay() override { ++traffic.replays; }
    };
    step();
    return std::make_unique<Counted>();
  }
  static Backend& host() { return cpu_backend(); }
  // A device that does not know indices checks them in its loop.
  static void check(const Arg& index, int64_t size, const char* op) {
    if (index.layout->numel() == 0) return;
    const auto range = host().index_range(index);
    if (range->low < -size || range->high >= size)
      throw Error(Error::Kind::index, op, "an index is out of range for size " + std::to_string(size));
  }
};

[[maybe_unused]] const Device registered = toy_device();

}  // namespace

ToyTraffic toy_traffic() { return traffic; }

Device toy_device() {
  static const DeviceType type = register_device("toy", ToyBackend::find);
  return type;
}

}  // namespace volta::test
