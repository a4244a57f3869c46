// DataLoader: batches of a data set, made by worker threads and the same whatever their number.
#pragma once
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <volta/data/collate.h>
#include <volta/data/dataset.h>
#include <volta/data/loader_state.h>
#include <volta/data/sampler.h>
#include <volta/device.h>

namespace volta::data {

struct LoaderOptions {
  Int batch_size = 1;
  bool shuffle = false;               // a new order in each epoch
  Sampler sampler = {};               // in place of shuffle
  BatchSampler batch_sampler = {};    // in place of batch_size, shuffle, sampler and drop_last
  Int num_workers = 0;                // threads beside the consumer's; 0: batches are made when they are asked for
  bool drop_last = false;             // leave out a last batch that is not full
  Int prefetch_factor = 2;            // how many batches each worker may be ahead
  std::optional<uint64_t> seed = {};  // of orders and random transforms; drawn from the default generator if not given
  std::optional<Device> device = {};  // where batches are to be
  bool pin_memory = false;            // batches of the CPU come in memory of cuda::pin_memory, where there is a GPU
};

namespace detail {

// What random numbers of an epoch come from, and whether anybody still waits for the batch.
struct FetchKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  const std::atomic<bool>* stop = nullptr;
  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

// While it lives, this thread draws from a generator that depends on the seed, the epoch and the item alone.
class ItemDraws {
 public:
  ItemDraws(const FetchKey& key, int64_t item);
  ~ItemDraws();
  ItemDraws(const ItemDraws&) = delete;
  ItemDraws& operator=(const ItemDraws&) = delete;
  Generator& generator() { return generator_; }

 private:
  Generator generator_;
  Generator* outer_;
};

[[noreturn]] void rethrow_for_item(int64_t item);   // the exception being handled, as an Error that names the item
[[noreturn]] void rethrow_for_batch(int64_t item);  // of collating the batch that begins with the item
// Where batches are to be.
struct BatchPlace {
  std::optional<Device> device;
  bool pinned;
};
Tensor moved(const Tensor& x, const BatchPlace& place);
// While it lives, batches are collated in the host's memory that suits the place.
class CollatesFor {
 public:
  explicit CollatesFor(const BatchPlace& place);
  ~CollatesFor();
  CollatesFor(const CollatesFor&) = delete;
  CollatesFor& operator=(const CollatesFor&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

// A set without its types.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual std::optional<int64_t> size() const = 0;  // nothing, of a stream
  // The batch of these items, null when stopped.
  virtual std::shared_ptr<void> fetch(std::span<const int64_t> items, const FetchKey& key) const = 0;
  // Streams only: a copy at its beginning; the next items, fewer at the end; a batch of what was read.
  virtual std::unique_ptr<BatchSource> restarted(int64_t epoch) const = 0;
  virtual std::shared_ptr<void> read(int64_t first, int64_t count, const FetchKey& key, int64_t& got) = 0;
  virtual std::shared_ptr<void> collate(void* items, int64_t first, const FetchKey& key) const = 0;
};

class EpochRun;
// What loaders of all types share: orders, threads, and the position.
class LoaderCore {
 public:
  LoaderCore(std::unique_ptr<BatchSource> source, LoaderOptions options);
  ~LoaderCore();
  int64_t size() const;
  LoaderState state() const;
  void set_state(const LoaderState& state);
  std::shared_ptr<EpochRun> begin();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  friend class EpochRun;
};
std::shared_ptr<void> next_batch(EpochRun& run);  // null at the end
[[noreturn]] void throw_no_batch();               // of an iterator at the end

struct DefaultCollate {};
template <class F> struct OnBatch { F f; };

template <class B> void move_batch(B& batch, const BatchPlace& place) {
  if constexpr (std::is_same_v<B, Tensor>) {
    batch = moved(batch, place);
  } else if constexpr (is_tuple<B>) {
    std::apply([&](auto&... parts) { (move_batch(parts, place), ...); }, batch);
  } else if constexpr (requires { batch.begin(); }) {
    if constexpr (!std::is_same_v<B, std::string>)
      for (auto& part : batch) move_batch(part, place);
  } else if constexpr (is_struct<B>()) {
    std::apply([&](auto&... parts) { (move_batch(parts, place), ...); }, reflect::tie_fields<fields<B>>(batch));
  }
}

template <class C, class T>
auto collate_with(const C& how, std::vector<T>& items, std::span<const int64_t> indices, Generator& g) {
  (void)given(how, "DataLoader");
  if constexpr (std::is_same_v<C, DefaultCollate>) return collate(items, indices);
  else if constexpr (requires { how(std::move(items), g); }) return how(std::move(items), g);
  else return how(std::move(items));
}
template <class F, class T>
auto collate_with(const OnBatch<F>& how, std::vector<T>& items, std::span<const int64_t> indices, Generator&) {
  return transformed(how.f, collate(items, indices));
}

template <class S, class C> class SourceOf final : public BatchSource {
 public:
  using Item = data::Item<S>;
  using Batch = decltype(collate_with(std::declval<const C&>(), std::declval<std::vector<Item>&>(), {},
                                      std::declval<Generator&>()));
  // A set that makes whole batches is asked for them, unless somebody wants the items.
  static constexpr bool whole = requires(const S& s, std::span<const int64_t> i) { s.get_batch(i); }
  &&(std::is_same_v<C, DefaultCollate> || requires(const C& c) { c.f; });

  SourceOf(S set, C collate, const BatchPlace& place)
      : set_(std::move(set)), collate_(std::move(collate)), place_(place) {
    (void)given(collate_, "DataLoader");
  }

  std::optional<int64_t> size() const override {
    if constexpr (Dataset<S>) return set_.size();
    else return {};
  }
  std::shared_ptr<void> fetch([[maybe_unused]] std::span<const int64_t> items,
                              [[maybe_unused]] const FetchKey& key) const override {
    if constexpr (!Dataset<S>) {
      return nullptr;
    } else if constexpr (whole) {
      ItemDraws draws(key, ~items[0]);
      return finished(items[0], [&] {
        if constexpr (std::is_same_v<C, DefaultCollate>) return set_.get_batch(items);
        else return transformed(collate_.f, set_.get_batch(items));
      });
    } else {
      std::vector<Item> list;
      list.reserve(items.size());
      for (const int64_t i : items) {
        if (key.stopped()) return nullptr;
        const ItemDraws draws(key, i);
        try {
          list.push_back(set_.get(i));
        } catch (...) {
          rethrow_for_item(i);
        }
      }
      return collated(list, items, key);
    }
  }
  std::unique_ptr<BatchSource> restarted([[maybe_unused]] int64_t epoch) const override {
    auto copy = std::make_unique<SourceOf>(set_, collate_, place_);
    if constexpr (StreamingDataset<S>) copy->set_.reset(epoch);
    return copy;
  }
  std::shared_ptr<void> read([[maybe_unused]] int64_t first, [[maybe_unused]] int64_t count,
                             [[maybe_unused]] const FetchKey& key, int64_t& got) override {
    got = 0;
    if constexpr (StreamingDataset<S>) {
      auto list = std::make_shared<std::vector<Item>>();
      for (; got < count && !key.stopped(); ++got) {
        const ItemDraws draws(key, first + got);
        try {
          auto item = set_.next();
          if (!item) break;
          list->push_back(std::move(*item));
        } catch (...) {
          rethrow_for_item(first + got);
        }
      }
      return list;
    } else {
      return nullptr;
    }
  }
  std::shared_ptr<void> collate(void* items, int64_t first, const FetchKey& key) const override {
    auto& list = *static_cast<std::vector<Item>*>(items);
    std::vector<int64_t> indices(list.size());
    for (size_t i = 0; i < list.size(); ++i) indices[i] = first + int64_t(i);
    return collated(list, indices, key);
  }

 private:
  std::shared_ptr<void> collated(std::vector<Item>& list, std::span<const int64_t> items, const FetchKey& key) const {
    ItemDraws draws(key, ~items[0]);
    return finished(items[0], [&] { return collate_with(collate_, list, items, draws.generator()); });
  }
  template <class F> std::shared_ptr<void> finished(int64_t first, const F& f) const {
    try {
      const CollatesFor ready(place_);
      auto batch = std::make_shared<Batch>(f());
      move_batch(*batch, place_);
      return batch;
    } catch (...) {
      rethrow_for_batch(first);
    }
  }

  S set_;
  C collate_;
  BatchPlace place_;
};

}  // namespace detail

// What is done with each batch that default_collate makes: DataLoader(set, {…}, on_batch(mixup({.num_classes = 10}))).
template <class F> detail::OnBatch<F> on_batch(F f) {
  (void)detail::given(f, "on_batch");
  return {std::move(f)};
}

// for (auto [x, y] : data::DataLoader(set, {.batch_size = 64, .shuffle = true, .num_workers = 2})) …
// Each pass over it is an epoch. Batches do not depend on the number of workers: each item's random numbers come from
// the seed, the epoch and the item. Workers call get() at the same time and run Volta's loops on one thread each. What
// they throw arrives as an Error that names the item. collate(items) or collate(items, generator) makes a batch of a
// std::vector of items, where default_collate is not wanted. Copies of a loader share its position.
template <AnyKindOfDataset S, class C = detail::DefaultCollate> class DataLoader {
  using Source = detail::SourceOf<S, C>;

 public:
  using Batch = typename Source::Batch;

  explicit DataLoader(S set, const LoaderOptions& options = {}, C collate = {})
      : core_(std::make_unique<Source>(std::move(set), std::move(collate),
                                       detail::BatchPlace{options.device, options.pin_memory}),
              options) {}

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(std::shared_ptr<detail::EpochRun> run) : run_(std::move(run)) { ++*this; }
    Batch& operator*() const {
      if (!batch_) detail::throw_no_batch();
      return *static_cast<Batch*>(batch_.get());
    }
    Batch* operator->() const { return &**this; }
    Iterator& operator++() {
      batch_.reset();
      if (run_) batch_ = detail::next_batch(*run_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

   private:
    std::shared_ptr<detail::EpochRun> run_;
    std::shared_ptr<void> batch_;
  };

  // Starts an epoch: the next one, or where set_state said. The workers end with the iterator.
  Iterator begin() { return Iterator(core_.begin()); }
  std::default_sentinel_t end() const { return {}; }
  int64_t size() const { return core_.size(); }  // batches in an epoch; an Error where the set is a stream
  LoaderState state() const { return core_.state(); }
  void set_state(const LoaderState& state) { core_.set_state(state); }

 private:
  detail::LoaderCore core_;
};

}  // namespace volta::data
