// Orders of epochs: sequential, random, weighted, a process's share, and buckets by length.
#include <volta/data/sampler.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "data/list.h"

namespace volta::data {
namespace {

std::vector<int64_t> permutation(int64_t size, Generator& g) {
  return randperm(size, {.device = Device(), .generator = &g}).to_vector<int64_t>();
}
std::vector<int64_t> in_order(int64_t size, const char* op) {
  std::vector<int64_t> items = list_of(std::max<int64_t>(size, 0), op);
  std::iota(items.begin(), items.end(), 0);
  return items;
}

}  // namespace

Sampler::Sampler(std::vector<int64_t> items) {
  const auto shared = std::make_shared<const std::vector<int64_t>>(std::move(items));
  order_ = [shared](int64_t, Generator&) { return *shared; };
  count_ = [shared](int64_t) { return int64_t(shared->size()); };
}

std::vector<int64_t> Sampler::order(int64_t size, Generator& g) const {
  require_function(order_, "Sampler");
  return order_(size, g);
}

int64_t Sampler::count(int64_t size) const {
  if (count_) return count_(size);
  Generator g;
  return int64_t(order(size, g).size());
}

BatchSampler::Batches BatchSampler::batches(int64_t size, Generator& g) const {
  require_function(batches_, "BatchSampler");
  return batches_(size, g);
}

std::vector<int64_t> SequentialSampler::order(int64_t size, Generator&) const {
  return in_order(size, "SequentialSampler");
}

int64_t RandomSampler::count(int64_t size) const {
  const int64_t n = num_samples.value_or(size);
  require(n >= 0, ErrorKind::argument, "RandomSampler", "num_samples is ", n);
  return n;
}

std::vector<int64_t> RandomSampler::order(int64_t size, Generator& g) const {
  const int64_t n = count(size);
  if (n == 0) return {};
  require(size > 0, ErrorKind::argument, "RandomSampler", n, " samples of an empty set");
  if (replacement) return randint(0, size, {n}, {.device = Device(), .generator = &g}).to_vector<int64_t>();
  std::vector<int64_t> items = list_of(n, "RandomSampler");
  for (int64_t done = 0; done < n;) {  // as in PyTorch: whole passes, each in an order of its own
    const std::vector<int64_t> pass = permutation(size, g);
    const int64_t part = std::min(size, n - done);
    std::copy_n(pass.begin(), part, items.begin() + done);
    done += part;
  }
  return items;
}

WeightedRandomSampler::WeightedRandomSampler(const Tensor& weights, Int num_samples, bool replacement)
    : weights_(weights.checked("WeightedRandomSampler").detach().to("cpu").to(f64).clone()),
      num_samples_(num_samples),
      replacement_(replacement) {
  constexpr const char* op = "WeightedRandomSampler";
  require(weights_.dim() == 1, ErrorKind::shape, op, "needs a weight for each item, [n], got shape ", weights_);
  require(num_samples_ > 0, ErrorKind::argument, op, "num_samples is ", num_samples_);
  Generator g;
  blamed_on(op, [&] { (void)multinomial(weights_, replacement ? 1 : num_samples_, replacement, &g); });
}
WeightedRandomSampler::WeightedRandomSampler(const std::vector<double>& weights, Int num_samples, bool replacement)
    : WeightedRandomSampler(tensor(weights, {weights.size()}, {.device = Device()}), num_samples, replacement) {}

std::vector<int64_t> WeightedRandomSampler::order(int64_t size, Generator& g) const {
  require(weights_.size(0) == size, ErrorKind::shape, "WeightedRandomSampler", weights_.size(0),
          " weights for a set of ", size, " items");
  return multinomial(weights_, num_samples_, replacement_, &g).to_vector<int64_t>();
}

int64_t DistributedSampler::count(int64_t size) const {
  constexpr const char* op = "DistributedSampler";
  require(num_replicas >= 1 && rank >= 0 && rank < num_replicas, ErrorKind::argument, op, "rank ", rank, " of ",
          num_replicas, " replicas");
  return drop_last ? size / num_replicas : ((Checked(size) + num_replicas - 1) / num_replicas).value(op);
}

std::vector<int64_t> DistributedSampler::order(int64_t size, Generator& g) const {
  const int64_t n = count(size);
  if (size == 0) return {};
  std::vector<int64_t> mine = list_of(n, "DistributedSampler");
  const std::vector<int64_t> all = shuffle ? permutation(size, g) : std::vector<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = (i * num_replicas + rank) % size;
    mine[size_t(i)] = shuffle ? all[size_t(place)] : place;
  }
  return mine;
}

BucketSampler::BucketSampler(std::vector<int64_t> lengths, const BucketOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  require(options.batch_size >= 1, ErrorKind::argument, "BucketSampler", "batch_size is ", options.batch_size);
  require(options.batches_per_bucket >= 1, ErrorKind::argument, "BucketSampler", "batches_per_bucket is ",
          options.batches_per_bucket);
}

BatchSampler::Batches BucketSampler::batches(int64_t size, Generator& g) const {
  constexpr const char* op = "BucketSampler";
  require(int64_t(lengths_.size()) == size, ErrorKind::shape, op, lengths_.size(), " lengths for a set of ", size,
          " items");
  std::vector<int64_t> items = options_.shuffle ? permutation(size, g) : in_order(size, op);
  const int64_t bucket = (Checked(options_.batch_size) * options_.batches_per_bucket).value_or(size);
  for (int64_t begin = 0; begin < size; begin += std::min(bucket, size - begin))
    std::stable_sort(items.begin() + begin, items.begin() + begin + std::min(bucket, size - begin),
                     [this](int64_t a, int64_t b) { return lengths_[size_t(a)] < lengths_[size_t(b)]; });
  BatchSampler::Batches result;
  for (int64_t begin = 0, n; begin < size; begin += n) {
    n = std::min(options_.batch_size, size - begin);
    if (n < options_.batch_size && options_.drop_last) break;
    result.emplace_back(items.begin() + begin, items.begin() + begin + n);
  }
  if (!options_.shuffle) return result;
  BatchSampler::Batches mixed;
  for (const int64_t b : permutation(int64_t(result.size()), g)) mixed.push_back(std::move(result[size_t(b)]));
  return mixed;
}

}  // namespace volta::data
