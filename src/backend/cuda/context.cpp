// Devices are looked for, and their state is made, when the first tensor asks for one. Of their memory, small blocks
// come from slabs of 2 MiB, middling ones from 32 MiB, and large ones have a slab of their own.
#include "backend/cuda/context.h"

#include <volta/cuda.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cuda/cuda.h"
#include "core/check.h"
#include "core/recording.h"

namespace volta::cuda {
namespace {

constexpr int64_t unit = 512, mib = int64_t(1) << 20, small_limit = mib, middle_limit = 10 * mib;

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

struct DeviceStorage : Storage, Pooled {
  Room room;
};

}  // namespace

Context& context(int device) {
  static std::array<std::once_flag, most_devices> made;
  static std::array<Context*, most_devices> all;  // never destroyed: tensors may outlive every static
  const int count = device_count();
  require(device >= 0 && device < count, ErrorKind::device, "device", "cuda:", device, " is not available: there are ",
          count, " GPUs");
  std::call_once(made[size_t(device)], [&] {
    const OnDevice current(device);
    all[size_t(device)] = new Context(device);
  });
  return *all[size_t(device)];
}

void check(cudaError_t status, const char* op) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw_error(status == cudaErrorMemoryAllocation ? ErrorKind::memory : ErrorKind::device, op,
              "CUDA reports: ", cudaGetErrorString(status));
}

void GiveBack::operator()(Block* block) const noexcept { block->owner->give(block); }

Memory::Memory(Context& context, Users users) : context_(context), users_(users) {
  const std::lock_guard lock(context.lanes_mutex_);
  context.memories_.insert(this);
}

Memory::~Memory() {
  const std::lock_guard lock(context_.lanes_mutex_);
  context_.memories_.erase(this);
}

// The best fit among the free blocks, or a part of a new slab.
Room Memory::take(int64_t bytes, const char* op) {
  if (bytes > context_.may_hold_.load(std::memory_order_relaxed)) throw_error(bytes, op);
  if (Room room = try_take(bytes)) return room;
  context_.release_cached();
  Room room = try_take(bytes);
  if (!room) throw_error(bytes, op);
  return room;
}

Room Memory::try_take(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) collect(false);
  const int64_t wanted = rounded(std::max<int64_t>(bytes, 1), unit);
  const bool small = wanted <= small_limit;
  Block key{this, nullptr, wanted, small, true, nullptr, nullptr};
  const auto found = free_.lower_bound(&key);
  const bool fits = found != free_.end() && (*found)->small == small;
  Block* block = fits ? free_.extract(found).value() : grow(wanted, small);
  if (!block) return {};
  const int64_t rest = block->bytes - wanted;
  if (rest >= (small ? unit : small_limit)) {
    auto* other = new Block{this, block->data + wanted, rest, small, true, block, block->after};
    if (other->after) other->after->before = other;
    block->after = other;
    block->bytes = wanted;
    free_.insert(other);
  }
  block->free = false;
  in_use_ += block->bytes;
  peak_ = std::max(peak_, in_use_);
  return Room(block);
}

Block* Memory::grow(int64_t bytes, bool small) {
  const int64_t least = rounded(bytes, 2 * mib), usual = !small && bytes <= middle_limit ? 32 * mib : least;
  const int64_t size = context_.reserve(usual) ? usual : context_.reserve(least) ? least : 0;
  if (size == 0) return nullptr;
  void* data = nullptr;
  if (cudaMalloc(&data, size_t(size)) != cudaSuccess) {
    cudaGetLastError();  // an exhausted device is no lasting error
    context_.held_ -= size;
    return nullptr;
  }
  reserved_ += size;
  return *slabs_.insert(new Block{this, static_cast<char*>(data), size, small, true, nullptr, nullptr}).first;
}

void Memory::give(Block* block) noexcept {
  Context& context = context_;  // which stays when this goes
  bool last = false;
  std::vector<cudaEvent_t> events;
  if (users_ == Users::others || (users_ == Users::any && context_.has_streams()))
    events = context_.marks_beside(*this);
  {
    const std::lock_guard lock(mutex_);
    in_use_ -= block->bytes;
    if (events.empty()) merge(block);
    else waiting_.push_back({block, std::move(events)});
    last = retired_ && in_use_ == 0;
  }
  if (last) {
    release_cached();
    delete this;
  }
  context.watch_memory(false);
}

void Memory::merge(Block* block) noexcept {
  block->free = true;
  if (block->after && block->after->free) absorb_next(block);
  if (block->before && block->before->free) {
    block = block->before;
    free_.erase(block);
    absorb_next(block);
  }
  free_.insert(block);
}

void Memory::collect(bool wait) noexcept {
  std::erase_if(waiting_, [&](Waiting& w) {
    std::erase_if(w.events, [&](cudaEvent_t event) {
      if ((wait ? cudaEventSynchronize(event) : cudaEventQuery(event)) == cudaErrorNotReady) return false;
      cudaEventDestroy(event);
      return true;
    });
    if (w.events.empty()) merge(w.block);
    return w.events.empty();
  });
}

void Memory::retire(Memory* memory) {
  bool last = false;
  {
    const std::lock_guard lock(memory->mutex_);
    memory->retired_ = true;
    last = memory->in_use_ == 0;
    memory->release_cached();
  }
  if (last) delete memory;
}

void Memory::absorb_next(Block* block) noexcept {
  Block* next = block->after;
  free_.erase(next);
  block->bytes += next->bytes;
  block->after = next->after;
  if (block->after) block->after->before = block;
  delete next;
}

// Slabs no part of which is in use go back to the driver. cudaFree waits for kernels that still read them.
void Memory::release_cached() {
  const std::lock_guard lock(mutex_);
  if (users_ == Users::one_step && !retired_) return;
  collect(true);
  std::erase_if(free_, [&](Block* block) {
    if (block->before || block->after) return false;
    cudaFree(block->data);
    reserved_ -= block->bytes;
    context_.held_ -= block->bytes;
    slabs_.erase(block);
    delete block;
    return true;
  });
}

void Memory::throw_error(int64_t bytes, const char* op) const {
  const MemoryStats all = context_.stats();
  const int64_t limit = context_.may_hold_;
  volta::throw_error(ErrorKind::memory, op, "cannot allocate ", bytes, " bytes on cuda:", context_.device, ": ",
                     all.in_use, " in use, ", all.cached, " cached, of ", limit,
                     limit < context_.total_ ? " that cuda::set_memory_limit allows" : "");
}

void Memory::add_to(MemoryStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.in_use += in_use_;
  stats.peak += peak_;
  stats.cached += reserved_ - in_use_;
}

void Memory::add_to(std::vector<MemoryBlock>& blocks) const {
  const std::lock_guard lock(mutex_);
  std::set<const Block*> waiting;  // given back: they count as free
  for (const Waiting& w : waiting_) waiting.insert(w.block);
  const auto address = [](const Block* block) { return uint64_t(reinterpret_cast<uintptr_t>(block->data)); };
  for (const Block* first : slabs_)
    for (const Block* block = first; block; block = block->after)
      blocks.push_back({address(block), block->bytes, !block->free && !waiting.contains(block), address(first)});
}

Context::Context(int index) : device(index) {
  const char* op = "device";
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), op);
  may_hold_ = total_ = int64_t(total);
  own_ = new_lane(Memory::Users::any);
  void* host = nullptr;
  check(cudaHostAlloc(&host, sizeof(Fault), cudaHostAllocMapped), op);
  fault = static_cast<Fault*>(std::memset(host, 0, sizeof(Fault)));
  check(cudaHostAlloc(&host, slot_count * slot_bytes, cudaHostAllocDefault), op);
  staging_ = static_cast<char*>(host);
  for (cudaEvent_t& event : slot_free_) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), op);
}

Lane Context::new_lane(Memory::Users users) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return {device, stream, new Memory(*this, users)};
}

const Lane* Context::take_lane() {
  const OnDevice current(device);
  {
    const std::lock_guard lock(lanes_mutex_);
    has_streams_ = true;
    if (!idle_lanes_.empty()) {
      const Lane* lane = idle_lanes_.back();
      idle_lanes_.pop_back();
      return lane;
    }
  }
  auto lane = std::make_unique<Lane>(new_lane(Memory::Users::any));
  const std::lock_guard lock(lanes_mutex_);
  return lanes_.emplace_back(std::move(lane)).get();
}

void Context::give_lane(const Lane* lane) noexcept {
  const std::lock_guard lock(lanes_mutex_);
  idle_lanes_.push_back(lane);
}

// Uploads read nothing that other lanes have made: those need not wait for them.
void Context::aside(const std::function<void()>& f) {
  Recording::refuse("upload", "it needs the host");
  const OnDevice current(device);
  std::unique_ptr<Lane> lane;
  {
    const std::lock_guard lock(lanes_mutex_);
    if (!upload_lanes_.empty()) {
      lane = std::move(upload_lanes_.back());
      upload_lanes_.pop_back();
    }
  }
  if (!lane) lane = std::make_unique<Lane>(new_lane(Memory::Users::others));
  const auto put_back = [&] {
    const std::lock_guard lock(lanes_mutex_);
    upload_lanes_.push_back(std::move(lane));
  };
  try {
    const OnLane here(*lane);
    f();
    wait_for(lane->stream, "upload");
  } catch (...) {
    put_back();  // perhaps busy: further uploads, and new owners of its memory, come after what it still has to do
    throw;
  }
  put_back();
}

std::vector<cudaEvent_t> Context::marks_beside(const Memory& memory) noexcept {
  const std::lock_guard lock(lanes_mutex_);
  std::vector<cudaEvent_t> events;
  const auto mark = [&](const Lane& lane) {
    cudaEvent_t event = nullptr;
    if (lane.memory == &memory || cudaStreamQuery(lane.stream) == cudaSuccess ||
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
      return;
    cudaEventRecord(event, lane.stream);
    events.push_back(event);
  };
  mark(own_);
  for (const auto& lane : lanes_) mark(*lane);
  return events;
}

MemoryStats Context::stats() const {
  const std::lock_guard lock(lanes_mutex_);
  MemoryStats stats;
  for (const Memory* memory : memories_) memory->add_to(stats);
  stats.transfers = transfers;
  stats.reads = reads;
  return stats;
}

std::vector<MemoryBlock> Context::snapshot() const {
  std::vector<MemoryBlock> blocks;
  {
    const std::lock_guard lock(lanes_mutex_);
    for (const Memory* memory : memories_) memory->add_to(blocks);
  }
  std::ranges::sort(blocks, {}, &MemoryBlock::address);
  return blocks;
}

void Context::release_cached() {
  const std::lock_guard lock(lanes_mutex_);
  for (Memory* memory : memories_) memory->release_cached();
}

bool Context::reserve(int64_t bytes) noexcept {
  int64_t held = held_;
  do
    if (held + bytes > may_hold_) return false;
  while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

void Context::set_memory_limit(int64_t bytes) {
  const OnDevice current(device);
  may_hold_ = std::min(bytes, total_);
  if (held_ > may_hold_) release_cached();
}

void Context::on_low_memory(double share, std::function<void(const MemoryStats&)> call) {
  const std::lock_guard lock(low_memory_.mutex);
  low_memory_.watched = bool(call);
  low_memory_.share = share;
  low_memory_.armed = true;
  low_memory_.call.swap(call);  // the old one goes with the caller's: it may hold tensors
}

void Context::compare_memory(bool may_call) {
  const MemoryStats now = stats();
  std::function<void(const MemoryStats&)> call;
  {
    const std::lock_guard lock(low_memory_.mutex);
    const bool low = double(now.in_use) >= low_memory_.share * double(may_hold_);
    if (!low) low_memory_.armed = true;
    else if (may_call && !Recording::current() && std::exchange(low_memory_.armed, false)) call = low_memory_.call;
  }
  if (call) call(now);
}

IntrusivePtr<Storage> Context::allocate(int64_t bytes, Device on, const char* op) {
  const OnDevice current(device);
  auto* storage = new DeviceStorage;
  auto owner = IntrusivePtr<Storage>::adopt(storage);
  storage->destroy = [](Storage* dead) noexcept { delete static_cast<DeviceStorage*>(dead); };
  storage->room = memory().take(bytes, op);
  storage->device = on;
  storage->data = storage->room->data;
  storage->bytes = bytes;
  watch_memory(true);  // here, as workspaces are taken under locks of the libraries, and what is called may run ops
  return owner;
}

void Context::elementwise(const ElementwiseCall& call) {
  constexpr void (*parts[])(const Context&, const ElementwiseCall&) = {
      map_part<0>, map_part<1>, map_part<2>, map_part<3>, map_part<4>, map_part<5>, map_part<6>, map_part<7>};
  const OnDevice current(device);
  if (call.out.layout->numel() == 0) return;
  require(call.op->index >= 0, ErrorKind::internal, call.op->name, "a user's op has no GPU kernel");
  parts[size_t(call.op->index) % std::size(parts)](*this, call);
}

// Small amounts go through pinned slots, so that uploads need not wait; whatever comes down is waited for.
void Context::transfer(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* op) {
  Recording::refuse(op, "it needs the host");
  const OnDevice current(device);
  const cudaStream_t stream = this->stream();
  const auto size = size_t(bytes);
  const bool up = kind == cudaMemcpyHostToDevice;
  if (bytes > slot_bytes) {
    // The timeout is for what is queued before: a copy that has begun must not touch the host's memory after an error.
    if (has_timeout()) wait_for(stream, op);
    check(cudaMemcpyAsync(to, from, size, kind, stream), op);
    check(cudaStreamSynchronize(stream), op);
    if (!up) report_fault(op);
    return;
  }
  const std::lock_guard lock(staging_mutex_);
  slot_ = (slot_ + 1) % slot_count;
  wait_for(slot_free_[slot_], op);
  char* slot = staging_ + slot_ * slot_bytes;
  if (up) std::memcpy(slot, from, size);
  check(cudaMemcpyAsync(up ? to : slot, up ? slot : from, size, kind, stream), op);
  if (up) return check(cudaEventRecord(slot_free_[slot_], stream), op);
  try {
    synchronize(op);
  } catch (...) {
    cudaEventRecord(slot_free_[slot_], stream);  // the copy may still come
    throw;
  }
  std::memcpy(to, slot, size);
}

void Context::synchronize(const char* op) const {
  Recording::refuse(op, "it waits for the device");
  const OnDevice current(device);
  wait_for(stream(), op);
  report_fault(op);
}

void Context::report_fault(const char* op) const {
  require(std::atomic_ref(fault->raised).exchange(0) == 0, ErrorKind::index, op,
          debug_mode ? "met index " : "an earlier loop met index ", fault->index, ", out of range for size ",
          fault->size);
}

void Context::finish_launch(const char* op) const {
  if (!Recording::current()) synchronize(op);
}

void Context::synchronize_all() const {
  const char* op = "synchronize";
  Recording::refuse(op, "it waits for the device");
  std::vector<cudaStream_t> streams = {own_.stream, stream()};
  {
    const std::lock_guard lock(lanes_mutex_);
    for (const auto& lane : lanes_) streams.push_back(lane->stream);
  }
  const OnDevice current(device);
  const Clock::time_point begin = Clock::now();
  for (const cudaStream_t stream : streams) wait_for(stream, op, begin);
  report_fault(op);
}

bool is_available() { return device_count() > 0; }

int device_count() {
  static const int count = [] {
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess) return std::min(n, most_devices);
    cudaGetLastError();
    return 0;
  }();
  return count;
}

void synchronize(int device) { context(device).synchronize_all(); }

MemoryStats memory_stats(int device) { return context(device).stats(); }

void empty_cache(int device) {
  Context& c = context(device);
  const OnDevice current(device);
  c.release_cached();
  release_pinned();
}

std::vector<MemoryBlock> memory_snapshot(int device) { return context(device).snapshot(); }

void set_memory_limit(int64_t bytes, int device) {
  check_memory_limit(bytes);
  context(device).set_memory_limit(bytes);
}

void on_low_memory(double share, std::function<void(const MemoryStats&)> call, int device) {
  check_share(share);
  context(device).on_low_memory(share, std::move(call));
}

}  // namespace volta::cuda

volta::Backend& volta::cuda_backend(int index) { return cuda::context(index); }
