// The loader's core: the orders of epochs, the worker threads with their bounded ordered queue, and the position.
#include <volta/data/loader.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include <volta/create.h>
#include <volta/cuda.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "backend/allocate.h"
#include "backend/backend.h"
#include "core/checked_arithmetic.h"
#include "core/serial.h"
#include "core/thread_generator.h"
#include "data/host.h"
#include "data/list.h"
#include "graph/record.h"

namespace volta::data::detail {
namespace {

constexpr const char* op = "DataLoader";
constexpr int64_t most_workers = 256;
constexpr int64_t the_order = std::numeric_limits<int64_t>::min();  // in an item's place, for what belongs to none

// The finaliser of SplitMix64: neighbouring numbers become unrelated ones.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
uint64_t seed_for(uint64_t seed, int64_t epoch, int64_t item) {
  return mixed(mixed(mixed(seed) ^ uint64_t(epoch)) + uint64_t(item));
}

[[noreturn]] void rethrow(const std::string& where) {
  try {
    throw;
  } catch (const Error& e) {
    throw Error(e.kind(), op, where + e.what());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::memory, op, where + "out of memory");
  } catch (const std::system_error& e) {  // files, too
    throw Error(ErrorKind::io, op, where + e.what());
  } catch (const std::exception& e) {
    throw Error(ErrorKind::internal, op, where + e.what());
  } catch (...) {
    throw Error(ErrorKind::internal, op, where + "an exception that is no std::exception");
  }
}

// Which items make up the batches of an epoch.
struct Plan {
  int64_t items = 0, batch_size = 1, batches = 0;
  std::vector<int64_t> order = {};  // where there is none, the set's own: a set may be larger than a list of its items
  std::vector<int64_t> ends = {};   // of the batches in the order, where they are not all of one size

  std::vector<int64_t> batch(int64_t b) const {
    const int64_t begin = ends.empty() ? b * batch_size : b == 0 ? 0 : ends[size_t(b - 1)];
    const int64_t end = ends.empty() ? begin + std::min(batch_size, items - begin) : ends[size_t(b)];
    std::vector<int64_t> list = list_of(end - begin, op);
    for (int64_t i = begin; i < end; ++i) list[size_t(i - begin)] = order.empty() ? i : order[size_t(i)];
    return list;
  }
};

Plan plan_of_batches(const BatchSampler& sampler, int64_t set_size, Generator& g) {
  Plan plan;
  for (const auto& batch : sampler.batches(set_size, g)) {
    if (batch.empty()) continue;
    plan.order.insert(plan.order.end(), batch.begin(), batch.end());
    plan.ends.push_back(int64_t(plan.order.size()));
  }
  plan.items = int64_t(plan.order.size());
  plan.batches = int64_t(plan.ends.size());
  return plan;
}

int64_t batches_of(int64_t items, const LoaderOptions& o) {
  return items / o.batch_size + (!o.drop_last && items % o.batch_size != 0);
}

Plan plan_of(const LoaderOptions& options, int64_t set_size, Generator& g) {
  require(set_size >= 0, ErrorKind::argument, op, "the set says that its size is ", set_size);
  Plan plan;
  if (options.batch_sampler) {
    plan = plan_of_batches(options.batch_sampler, set_size, g);
  } else {
    if (options.sampler) plan.order = options.sampler.order(set_size, g);
    else if (options.shuffle) plan.order = RandomSampler().order(set_size, g);
    plan.items = options.sampler ? int64_t(plan.order.size()) : set_size;
    plan.batch_size = options.batch_size;
    plan.batches = batches_of(plan.items, options);
  }
  for (const int64_t i : plan.order)
    require(i >= 0 && i < set_size, ErrorKind::index, op, "the sampler asks for item ", i, " of a set of ", set_size);
  return plan;
}

void check_options(const LoaderOptions& o, bool stream) {
  const auto check = [](bool fine, const auto&... why) { require(fine, ErrorKind::argument, op, why...); };
  check(o.batch_size >= 1, "batch_size is ", int64_t(o.batch_size), "; it must be at least 1");
  check(o.num_workers >= 0 && o.num_workers <= most_workers, "num_workers is ", int64_t(o.num_workers),
        "; it must be from 0 to ", most_workers);
  check(o.prefetch_factor >= 1 && o.prefetch_factor <= 1 << 20, "prefetch_factor is ", int64_t(o.prefetch_factor),
        "; it must be from 1 to ", 1 << 20);
  check(!(o.shuffle && o.sampler), "shuffle and sampler exclude each other: a sampler says the order");
  check(!(o.batch_sampler && (o.sampler || o.shuffle || o.drop_last || o.batch_size != 1)),
        "batch_sampler excludes batch_size, shuffle, sampler and drop_last: it says whole batches");
  check(!stream || !(o.shuffle || o.sampler || o.batch_sampler),
        "a streaming set has an order of its own: shuffle and samplers need a set with size() and get(i)");
}

}  // namespace

ItemDraws::ItemDraws(const FetchKey& key, int64_t item)
    : generator_(seed_for(key.seed, key.epoch, item)), outer_(ThreadGenerator::exchange(&generator_)) {}
ItemDraws::~ItemDraws() { ThreadGenerator::exchange(outer_); }

void rethrow_for_item(int64_t item) { rethrow("item " + std::to_string(item) + ": "); }
void rethrow_for_batch(int64_t item) { rethrow("the batch that begins with item " + std::to_string(item) + ": "); }

// Uploads run while the device computes. A tensor that is on a device already moves after the work that makes it.
Tensor moved(const Tensor& x, const BatchPlace& place) {
  if (!x.defined()) return x;
  const bool here = x.device().is_cpu();
  if (!place.device) return here && place.pinned && cuda::is_available() ? cuda::pin_memory(x) : x;
  const Device device = *place.device;
  if (!here || device.is_cpu()) return x.to(device);
  Tensor y;
  backend(device).aside([&] { y = x.to(device); });
  return y;
}

struct CollatesFor::Guard {
  explicit Guard(Device on) : device(on) {}
  HostMemoryFor device;
};
CollatesFor::CollatesFor(const BatchPlace& place) {
  const bool up = place.device && !place.device->is_cpu();
  if (!up && !(place.pinned && !place.device && cuda::is_available())) return;
  guard_ = std::make_unique<Guard>(up ? *place.device : Device("cuda"));
}
CollatesFor::~CollatesFor() = default;

Tensor stack_items(std::span<const Tensor> tensors, std::span<const int64_t> items) {
  constexpr const char* name = "default_collate";
  const auto item = [&](size_t i) { return items.empty() ? int64_t(i) : items[i]; };
  require(!tensors.empty(), ErrorKind::argument, name, "no items");
  bool plain = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor &a = tensors[0], &x = tensors[i];
    require(x.defined(), ErrorKind::argument, name, "item ", item(i), " holds an undefined tensor");
    require(x.shape() == a.shape(), ErrorKind::shape, name, "item ", item(0), " has shape ", a, " and item ", item(i),
            " shape ", x, "; items of one batch must have one shape, or the loader be given a collate of one's own");
    require(x.dtype() == a.dtype(), ErrorKind::dtype, name, "item ", item(0), " is ", a.dtype(), " and item ", item(i),
            " is ", x.dtype());
    plain = plain && is_host_bytes(x);
  }
  if (!plain) return stack(std::vector<Tensor>(tensors.begin(), tensors.end()));
  Shape shape = tensors[0].shape();
  shape.insert(0, int64_t(tensors.size()));
  const Tensor out = allocate_host(shape, tensors[0].dtype(), name);
  const size_t bytes = size_t(tensors[0].nbytes());
  if (bytes == 0) return out;
  char* to = static_cast<char*>(address(out));
  for (const Tensor& x : tensors) {
    std::memcpy(to, address(x), bytes);
    to += bytes;
  }
  return out;
}

struct LoaderCore::Shared {
  std::unique_ptr<BatchSource> source;
  LoaderOptions options;
  mutable std::mutex mutex;
  LoaderState state;
  bool resumed = false;  // the next epoch begins where the state says
  uint64_t current = 0;  // number of the run that moves the state

  uint64_t seed() const { return *options.seed; }
};

// What guards of the thread that begins an epoch say about new tensors, for whichever thread makes its batches. Autocast
// and the algorithm of convolutions are the model's: batches are made without.
struct Surroundings {
  const bool inference = is_inference_mode();
  const DType dtype = default_dtype();
  const Device device = default_device();
};
class Within {
 public:
  explicit Within(const Surroundings& s) : off_(false, s.inference), dtype_(s.dtype), device_(s.device) {}

 private:
  const GradGuard off_;
  const AutocastScope plain_{AutocastMode()};
  const UseConvAlgorithm any_{ConvAlgorithm::automatic};
  const DefaultDtype dtype_;
  const DefaultDevice device_;
};

// One pass over the set. Workers take batches in order and put them into a map by number; none goes further ahead than
// the queue is long. The consumer takes them in order, or makes them itself where there are no workers.
class EpochRun {
 public:
  EpochRun(std::shared_ptr<LoaderCore::Shared> shared, const LoaderState& from, uint64_t number)
      : shared_(std::move(shared)),
        key_{from.seed, from.epoch, &stop_},
        number_(number),
        taken_(from.batch),
        given_(from.batch) {
    const LoaderOptions& o = shared_->options;
    if (const auto size = shared_->source->size()) {
      Generator order(seed_for(key_.seed, key_.epoch, the_order));
      plan_ = plan_of(o, *size, order);
      batches_ = plan_.batches;
    } else {
      stream_ = shared_->source->restarted(key_.epoch);
      skip(from.batch);
    }
    ahead_ = o.num_workers * o.prefetch_factor;
  }
  ~EpochRun() {
    stop_.store(true);
    {
      const std::lock_guard lock(mutex_);  // whoever is about to wait sees the flag, or is woken
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void start() {
    const int64_t wanted = std::min<int64_t>(shared_->options.num_workers, batches_ - taken_);
    try {
      for (int64_t i = 0; i < wanted; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // the system has no more threads: go on with those there are
    }
  }

  std::shared_ptr<void> next() {
    std::shared_ptr<void> batch = workers_.empty() ? made_here() : awaited();
    if (batch) ++given_;
    const std::lock_guard lock(shared_->mutex);
    if (shared_->current == number_)
      shared_->state = batch ? LoaderState{key_.epoch, given_, key_.seed} : LoaderState{key_.epoch + 1, 0, key_.seed};
    return batch;
  }

 private:
  struct Made {
    std::shared_ptr<void> batch;  // null: the stream has ended
    std::exception_ptr error;
  };
  struct Taken {
    int64_t number = 0, first = 0;
    std::shared_ptr<void> items;  // read from a stream
  };

  // Streams are read by one at a time, in order.
  Taken take() {
    Taken t;
    t.number = taken_++;
    if (!stream_ || ended_) return t;
    t.first = read_;
    int64_t got = 0;
    const LoaderOptions& o = shared_->options;
    try {
      t.items = stream_->read(read_, o.batch_size, key_, got);
    } catch (...) {
      ended_ = true;
      throw;
    }
    read_ += got;
    ended_ = got < o.batch_size;
    if (got == 0 || (ended_ && o.drop_last)) t.items = nullptr;
    return t;
  }
  std::shared_ptr<void> make(const Taken& t) const {
    if (!stream_) return shared_->source->fetch(plan_.batch(t.number), key_);
    return t.items ? stream_->collate(t.items.get(), t.first, key_) : nullptr;
  }
  void skip(int64_t batches) {
    const Within within(surroundings_);
    for (int64_t i = 0; i < batches && !ended_; ++i) {
      int64_t got = 0;
      (void)stream_->read(read_, shared_->options.batch_size, key_, got);
      read_ += got;
      ended_ = got < shared_->options.batch_size;
    }
  }

  std::shared_ptr<void> made_here() {
    if (failed_ || taken_ >= batches_) return nullptr;
    try {
      const Within within(surroundings_);
      return make(take());
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  std::shared_ptr<void> awaited() {
    if (failed_) return nullptr;
    Made made;
    {
      std::unique_lock lock(mutex_);
      if (given_ >= batches_) return nullptr;
      ready_.wait(lock, [this] { return made_.contains(given_); });
      made = std::move(made_.extract(given_).mapped());
      ++consumed_;
    }
    room_.notify_all();
    failed_ = bool(made.error) || !made.batch;
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.batch);
  }

  void work() {
    const SerialThread alone;
    const Within within(surroundings_);
    for (;;) {
      Taken t;
      Made made;
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock,
                   [this] { return stop_.load() || taken_ >= batches_ || taken_ < given_from_ + consumed_ + ahead_; });
        if (stop_.load() || taken_ >= batches_) return;
        t.number = taken_;
        try {
          t = take();
        } catch (...) {
          made.error = std::current_exception();
        }
        if (ended_) batches_ = taken_ + 1;  // one further, which says that it was the last
      }
      try {
        if (!made.error) made.batch = make(t);
      } catch (...) {
        made.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        if (made.error) batches_ = std::min(batches_, taken_);  // nobody begins a batch after this one
        made_.emplace(t.number, std::move(made));
      }
      ready_.notify_one();
    }
  }

  std::shared_ptr<LoaderCore::Shared> shared_;
  const Surroundings surroundings_;
  std::atomic<bool> stop_{false};
  const FetchKey key_;
  const uint64_t number_;
  Plan plan_;
  std::unique_ptr<BatchSource> stream_;
  int64_t batches_ = std::numeric_limits<int64_t>::max() / 2;  // of a stream: not known before its end
  int64_t ahead_ = 0;
  int64_t read_ = 0;     // items of the stream
  bool ended_ = false;   // the stream
  bool failed_ = false;  // the consumer has seen the end
  int64_t taken_;        // batches begun
  int64_t given_;        // batches given to the consumer; only its thread looks
  const int64_t given_from_ = given_;
  int64_t consumed_ = 0;

  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::map<int64_t, Made> made_;
  std::vector<std::thread> workers_;
};

LoaderCore::LoaderCore(std::unique_ptr<BatchSource> source, LoaderOptions options)
    : shared_(std::make_shared<Shared>()) {
  check_options(options, !source->size());
  if (!options.seed) {
    const Generator::State drawn = default_generator().take(1);
    options.seed = mixed(mixed(drawn.seed) ^ drawn.offset);
  }
  shared_->state.seed = *options.seed;
  shared_->source = std::move(source);
  shared_->options = std::move(options);
}
LoaderCore::~LoaderCore() = default;

int64_t LoaderCore::size() const {
  const LoaderOptions& o = shared_->options;
  const auto items = shared_->source->size();
  require(items.has_value(), ErrorKind::argument, op, "the number of batches of a streaming set is not known");
  if (o.batch_sampler) {
    const LoaderState at = state();
    Generator order(seed_for(at.seed, at.epoch, the_order));
    return plan_of(o, *items, order).batches;
  }
  const int64_t count = o.sampler ? o.sampler.count(*items) : *items;
  require(count >= 0, ErrorKind::argument, op, "the ", o.sampler ? "sampler" : "set", " says that its size is ", count);
  return batches_of(count, o);
}

LoaderState LoaderCore::state() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->state;
}

void LoaderCore::set_state(const LoaderState& state) {
  constexpr int64_t most = int64_t(1) << 62;
  require(state.epoch >= 0 && state.epoch <= most && state.batch >= 0 && state.batch <= most, ErrorKind::argument, op,
          "set_state: epoch ", state.epoch, ", batch ", state.batch);
  const std::lock_guard lock(shared_->mutex);
  shared_->state = state;
  shared_->resumed = true;
  ++shared_->current;  // a pass under way no longer moves the position
}

std::shared_ptr<EpochRun> LoaderCore::begin() {
  LoaderState from;
  uint64_t number = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    LoaderState& state = shared_->state;
    if (!std::exchange(shared_->resumed, false) && state.batch > 0) state = {state.epoch + 1, 0, state.seed};
    from = state;
    number = ++shared_->current;
  }
  const auto run = std::make_shared<EpochRun>(shared_, from, number);
  run->start();
  return run;
}

std::shared_ptr<void> next_batch(EpochRun& run) { return run.next(); }
void throw_no_batch() { throw_error(ErrorKind::index, "DataLoader", "the epoch has no further batch"); }

}  // namespace volta::data::detail
