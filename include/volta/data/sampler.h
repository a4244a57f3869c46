// Samplers: which items an epoch visits, and in what order.
#pragma once
#include <functional>
#include <vector>

#include <volta/random.h>
#include <volta/tensor.h>

namespace volta::data {

// Says the order of an epoch's items. Any type with order(size, generator) is one; the generator is that of the epoch.
// Where count(size) is there too, a loader knows its number of batches without drawing.
class Sampler {
 public:
  Sampler() = default;
  Sampler(std::vector<int64_t> items);  // these, in every epoch
  template <class T>
  requires requires(const T& s, Generator& g) {
    { s.order(int64_t(0), g) } -> std::convertible_to<std::vector<int64_t>>;
  }
  Sampler(T sampler) : order_([sampler](int64_t size, Generator& g) { return sampler.order(size, g); }) {
    if constexpr (requires { sampler.count(int64_t(0)); })
      count_ = [sampler = std::move(sampler)](int64_t size) { return sampler.count(size); };
  }
  explicit operator bool() const { return bool(order_); }
  std::vector<int64_t> order(int64_t size, Generator& g) const;
  int64_t count(int64_t size) const;

 private:
  std::function<std::vector<int64_t>(int64_t, Generator&)> order_;
  std::function<int64_t(int64_t)> count_;
};

// Says whole batches: any type with batches(size, generator).
class BatchSampler {
 public:
  using Batches = std::vector<std::vector<int64_t>>;
  BatchSampler() = default;
  template <class T>
  requires requires(const T& s, Generator& g) {
    { s.batches(int64_t(0), g) } -> std::convertible_to<Batches>;
  }
  BatchSampler(T sampler)
      : batches_([sampler = std::move(sampler)](int64_t size, Generator& g) { return sampler.batches(size, g); }) {}
  explicit operator bool() const { return bool(batches_); }
  Batches batches(int64_t size, Generator& g) const;

 private:
  std::function<Batches(int64_t, Generator&)> batches_;
};

// In the set's order.
struct SequentialSampler {
  std::vector<int64_t> order(int64_t size, Generator& g) const;
  int64_t count(int64_t size) const { return size; }
};

// A new random order in each epoch; with replacement items may come twice: RandomSampler{.num_samples = 500}.
struct RandomSampler {
  bool replacement = false;
  std::optional<int64_t> num_samples = {};  // the set's size unless given
  std::vector<int64_t> order(int64_t size, Generator& g) const;
  int64_t count(int64_t size) const;
};

// Items as often as their weights say: WeightedRandomSampler(weights, 1000).
class WeightedRandomSampler {
 public:
  WeightedRandomSampler(const Tensor& weights, Int num_samples, bool replacement = true);
  WeightedRandomSampler(const std::vector<double>& weights, Int num_samples, bool replacement = true);
  std::vector<int64_t> order(int64_t size, Generator& g) const;
  int64_t count(int64_t) const { return num_samples_; }

 private:
  Tensor weights_;
  int64_t num_samples_;
  bool replacement_;
};

// One process's share of an epoch: every num_replicas-th item of an order that all share. Loaders of all processes are
// given the same seed. Items are repeated, or with drop_last left out, so that all shares are of one size.
struct DistributedSampler {
  int64_t num_replicas = 1, rank = 0;
  bool shuffle = true, drop_last = false;
  std::vector<int64_t> order(int64_t size, Generator& g) const;
  int64_t count(int64_t size) const;
};

struct BucketOptions {
  int64_t batch_size = 1;
  bool shuffle = true, drop_last = false;
  int64_t batches_per_bucket = 100;  // how many batches are sorted together
};
// Batches of items of similar lengths, so that padding wastes little: .batch_sampler = BucketSampler(lengths, {…}).
class BucketSampler {
 public:
  explicit BucketSampler(std::vector<int64_t> lengths, const BucketOptions& options = {});
  BatchSampler::Batches batches(int64_t size, Generator& g) const;

 private:
  std::vector<int64_t> lengths_;
  BucketOptions options_;
};

}  // namespace volta::data
