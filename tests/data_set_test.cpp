// Data sets made of others, and the samplers.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data_common.h"
#include "taken.h"

using namespace volta;
using namespace volta::test;

namespace {

struct Naturals {
  int64_t n = 10;
  int64_t size() const { return n; }
  int64_t get(int64_t i) const { return i; }
};
template <class S> std::vector<int64_t> values(const S& set) {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < set.size(); ++i) v.push_back(set.get(i));
  return v;
}

}  // namespace

TEST(DataSet, Tensors) {
  const Tensor x = rand({5, 2});
  const data::TensorDataset set(x, arange(5));
  EXPECT_EQ(set.size(), 5);
  const auto [a, b] = set.get(3);
  EXPECT_TRUE(equal(a, x[3]) && b.item<int64_t>() == 3);
  refused(Error::Kind::index, [&] { (void)set.get(5); });
  refused(Error::Kind::index, [&] { (void)set.get(-1); });
  refused(Error::Kind::shape, [&] { data::TensorDataset(x, arange(4)); });
  refused(Error::Kind::shape, [&] { data::TensorDataset(tensor(1.)); });
  refused(Error::Kind::argument, [&] { data::TensorDataset(x, Tensor()); });
  EXPECT_EQ(data::TensorDataset(zeros({0, 3})).size(), 0);
}

TEST(DataSet, RowsOfEveryDtypeAndLayout) {
  for (const DType dtype : {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean}) {
    const Tensor x = randint(0, 2, {6, 4}).to(dtype);
    const std::vector<int64_t> rows{5, 0, 0, 3};
    for (const Tensor& y : {x, x.t().contiguous().t(), x.flip(0), x.slice(1, 0, 4, 2), x.slice(1, 0, 0)}) {
      const auto [batch] = data::TensorDataset(y).get_batch(rows);
      EXPECT_TRUE(equal(batch, y.index_select(0, tensor(rows))));
    }
  }
}

TEST(DataSet, SubsetConcatMap) {
  const auto odd = data::subset(Naturals{}, {1, 3, 5});
  EXPECT_EQ(values(odd), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(values(data::subset(odd, {2, 0})), (std::vector<int64_t>{5, 1}));
  refused(Error::Kind::index, [] { data::subset(Naturals{}, {10}); });
  refused(Error::Kind::index, [&] { (void)odd.get(3); });
  const auto both = data::concat(odd, Naturals{0}, Naturals{2});
  EXPECT_EQ(values(both), (std::vector<int64_t>{1, 3, 5, 0, 1}));
  refused(Error::Kind::index, [&] { (void)both.get(5); });
  EXPECT_EQ(values(data::map(both, [](int64_t i) { return i * i; })), (std::vector<int64_t>{1, 9, 25, 0, 1}));
  refused(Error::Kind::shape, [] { data::concat(Naturals{int64_t(1) << 62}, Naturals{int64_t(1) << 62}); });
  refused(Error::Kind::argument, [] { data::concat(Naturals{}, Naturals{-1}); });
  const data::AnyDataset<int64_t> any = odd;
  EXPECT_EQ(values(any), values(odd));
}

TEST(DataSet, MovedFromAreRefused) {
  auto part = data::subset(Naturals{}, {1, 3});
  const auto taken = volta::test::taken(part);
  EXPECT_EQ(taken.size(), 2);
  refused(Error::Kind::argument, [&] { (void)part.size(); });
  refused(Error::Kind::argument, [&] { (void)part.get(0); });
  refused(Error::Kind::argument, [&] { (void)part.indices(); });
  refused(Error::Kind::argument, [&] { (void)std::move(part).indices(); });
  refused(Error::Kind::argument, [&] { (void)data::subset(part, {0}); });
  data::AnyDataset<int64_t> any = taken;
  const data::AnyDataset<int64_t> other = volta::test::taken(any);
  EXPECT_EQ(other.get(1), 3);
  refused(Error::Kind::argument, [&] { (void)any.size(); });
  refused(Error::Kind::argument, [&] { (void)any.get(0); });
  auto both = data::concat(taken, taken);
  const auto whole = volta::test::taken(both);
  EXPECT_EQ(whole.size(), 4);
  EXPECT_EQ(both.size(), 0);
  refused(Error::Kind::index, [&] { (void)both.get(0); });
  data::TensorDataset tensors(ones({2}));
  const auto held = volta::test::taken(tensors);
  EXPECT_EQ(held.size(), 2);
  EXPECT_FALSE(attempt([&] { return tensors.size(); }));
  EXPECT_FALSE(attempt([&] { return tensors.get(0); }));
}

TEST(DataSet, EmptyFunctionsAreRefused) {
  const std::function<int64_t(int64_t)> none;
  int64_t (*const pointer)(int64_t) = nullptr;
  refused(Error::Kind::argument, [&] { (void)data::map(Naturals{}, none); });
  refused(Error::Kind::argument, [&] { (void)data::map(Naturals{}, pointer); });
  refused(Error::Kind::argument, [&] { (void)data::on_first(none); });
  auto square = data::map(Naturals{}, std::function<int64_t(int64_t)>([](int64_t i) { return i * i; }));
  const auto taken = volta::test::taken(square);
  EXPECT_EQ(taken.get(3), 9);
  refused(Error::Kind::argument, [&] { (void)square.get(3); });
  Generator g;
  refused(Error::Kind::argument, [&] { (void)data::Sampler().order(3, g); });
  refused(Error::Kind::argument, [&] { (void)data::Sampler().count(3); });
  refused(Error::Kind::argument, [&] { (void)data::BatchSampler().batches(3, g); });
}

TEST(DataSet, MapTakesItemsOrTheirParts) {
  const data::TensorDataset set(arange(4), arange(4) * 10);
  const auto sum = data::map(set, [](const Tensor& a, const Tensor& b) { return (a + b).item<int64_t>(); });
  EXPECT_EQ(values(sum), (std::vector<int64_t>{0, 11, 22, 33}));
  const auto whole = data::map(set, [](const std::tuple<Tensor, Tensor>& t) { return std::get<1>(t).item<int64_t>(); });
  EXPECT_EQ(whole.get(2), 20);
  const auto noisy = data::map(set, [](const Tensor& a, const Tensor&, Generator& g) {
    return (a + randint(100, 200, {}, {.generator = &g})).item<int64_t>();
  });
  manual_seed(1);
  const auto first = values(noisy);
  manual_seed(1);
  EXPECT_EQ(values(noisy), first);
  const auto on = data::map(set, data::on_first([](const Tensor& x) { return x + 1; }));
  EXPECT_EQ(std::get<0>(on.get(1)).item<int64_t>(), 2);
  EXPECT_EQ(std::get<1>(on.get(1)).item<int64_t>(), 10);
  const auto pairs = data::map(Naturals{}, [](int64_t i) { return std::pair(i, 7); });
  EXPECT_EQ(data::map(pairs, data::on_first([](int64_t i) { return -i; })).get(3).first, -3);
}

TEST(DataSet, RandomSplit) {
  const auto [a, b] = data::random_split(Naturals{}, 0.7, {.seed = 1});
  EXPECT_EQ(a.size(), 7);
  EXPECT_EQ(b.size(), 3);
  auto all = values(a);
  for (const int64_t i : values(b)) all.push_back(i);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 10u);
  EXPECT_EQ(values(data::random_split(Naturals{}, 0.7, {.seed = 1}).first), values(a));
  EXPECT_NE(values(data::random_split(Naturals{}, 0.7, {.seed = 2}).first), values(a));
  EXPECT_EQ(data::random_split(Naturals{100}, 0.29).first.size(), 29);
  EXPECT_EQ(data::random_split(Naturals{6}, 0.8).first.size(), 5);  // as {0.8, 0.2}, in PyTorch too
  EXPECT_EQ(data::random_split(Naturals{6}, {0.8, 0.2})[0].size(), 5);
  EXPECT_EQ(data::random_split(Naturals{6}, 1).second.size(), 0);
  EXPECT_EQ(data::random_split(Naturals{6}, 0).first.size(), 0);
  EXPECT_EQ(data::random_split(Naturals{}, 4).first.size(), 4);
  const auto three = data::random_split(Naturals{}, {0.5, 0.3, 0.2});
  EXPECT_EQ(three[0].size() + three[1].size() + three[2].size(), 10);
  EXPECT_EQ(data::random_split(Naturals{11}, {0.5, 0.5})[0].size(), 6);
  EXPECT_EQ(data::random_split(Naturals{}, {8, 2})[1].size(), 2);
  const double halves[] = {0.5, 0.5}, whole[] = {1.0};
  for (const int64_t size : {int64_t(1'000'000'000), int64_t(1) << 52, int64_t(1) << 61})
    EXPECT_EQ(data::detail::part_sizes(size, halves), (std::vector<int64_t>{size / 2, size / 2}));
  EXPECT_EQ(data::detail::first_size(1'000'000'000, 0.29), 290'000'000);
  EXPECT_EQ(data::detail::part_sizes(1'000'000'001, halves)[0], 500'000'001);
  EXPECT_EQ(data::detail::part_sizes(10, whole), std::vector<int64_t>{10});
  EXPECT_EQ(data::random_split(Naturals{}, std::vector<double>{1.0}).size(), 1u);
  for (const std::vector<double>& bad : {std::vector{0.5}, std::vector{4.}})  // as in PyTorch, not the rest left out
    refused(Error::Kind::argument, [&] { (void)data::random_split(Naturals{}, bad); });
  for (const double bad : {-0.1, 11., 2.5, double(NAN), double(INFINITY)})
    refused(Error::Kind::argument, [&] { (void)data::random_split(Naturals{}, bad); });
  refused(Error::Kind::argument, [&] { (void)data::random_split(Naturals{}, {5, 4}); });
  manual_seed(3);
  const auto drawn = values(data::random_split(Naturals{}, 0.5).first);
  manual_seed(3);
  EXPECT_EQ(values(data::random_split(Naturals{}, 0.5).first), drawn);
}

TEST(DataSampler, Random) {
  Generator g(1);
  const auto once = data::RandomSampler{}.order(100, g);
  EXPECT_EQ(std::set<int64_t>(once.begin(), once.end()).size(), 100u);
  EXPECT_EQ((data::RandomSampler{.num_samples = 250}.order(100, g).size()), 250u);
  const auto again = data::RandomSampler{.replacement = true, .num_samples = 1000}.order(10, g);
  EXPECT_EQ(std::set<int64_t>(again.begin(), again.end()).size(), 10u);
  EXPECT_TRUE(data::RandomSampler{}.order(0, g).empty());
  refused(Error::Kind::argument, [&] { (void)data::RandomSampler{.num_samples = 3}.order(0, g); });
  refused(Error::Kind::argument, [&] { (void)data::RandomSampler{.num_samples = -3}.order(4, g); });
  refused(Error::Kind::argument,
          [&] { (void)data::DataLoader(Naturals{}, {.sampler = data::RandomSampler{.num_samples = -5}}).size(); });
}

// Lists longer than memory holds: an Error, as of tensors.
TEST(DataSampler, OfSetsLargerThanMemory) {
  Generator g;
  const int64_t huge = int64_t(1) << 62;
  const auto refuses = [&](const auto& sampler) {
    refused(Error::Kind::memory, [&] { (void)sampler.order(huge, g); });
  };
  refuses(data::SequentialSampler{});
  refuses(data::DistributedSampler{.num_replicas = 2, .shuffle = false});
  refuses(data::DistributedSampler{.num_replicas = 2});
  refuses(data::RandomSampler{});
  refused(Error::Kind::memory, [&] { (void)data::RandomSampler{.num_samples = huge}.order(10, g); });
  const data::DistributedSampler one{.num_replicas = huge / 2, .rank = 5, .shuffle = false};
  EXPECT_EQ(one.order(huge / 2, g), std::vector<int64_t>{5});
}

TEST(DataSampler, Weighted) {
  Generator g(1);
  const data::WeightedRandomSampler sampler(std::vector<double>{1, 0, 3}, 20000);
  std::map<int64_t, int> counts;
  for (const int64_t i : sampler.order(3, g)) ++counts[i];
  EXPECT_EQ(counts.count(1), 0u);
  EXPECT_NEAR(counts[0], 5000, 5 * std::sqrt(20000 * 0.25 * 0.75));  // five standard deviations
  const data::WeightedRandomSampler distinct(tensor({1., 0., 3.}), 2, false);
  auto both = distinct.order(3, g);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, (std::vector<int64_t>{0, 2}));
  refused(Error::Kind::shape, [&] { (void)sampler.order(4, g); });
  refused(Error::Kind::argument, [] { data::WeightedRandomSampler(std::vector<double>{1, 0}, 2, false); });
  refused(Error::Kind::argument, [] { data::WeightedRandomSampler(std::vector<double>{1, -1}, 2); });
  refused(Error::Kind::argument, [] { data::WeightedRandomSampler(std::vector<double>{1}, 0); });
}

TEST(DataSampler, Distributed) {
  for (const bool drop : {false, true}) {
    std::multiset<int64_t> seen;
    for (int64_t rank = 0; rank < 3; ++rank) {
      Generator g(7);  // all processes have the same
      const data::DistributedSampler sampler{.num_replicas = 3, .rank = rank, .drop_last = drop};
      const auto mine = sampler.order(10, g);
      EXPECT_EQ(int64_t(mine.size()), sampler.count(10));
      seen.insert(mine.begin(), mine.end());
    }
    EXPECT_EQ(seen.size(), drop ? 9u : 12u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), drop ? 9u : 10u);
  }
  Generator g;
  EXPECT_EQ((data::DistributedSampler{.num_replicas = 5, .rank = 4, .shuffle = false}.order(2, g)),
            (std::vector<int64_t>{0}));
  refused(Error::Kind::argument, [&] { (void)data::DistributedSampler{.num_replicas = 2, .rank = 2}.order(2, g); });
  refused(Error::Kind::argument, [&] { (void)data::DistributedSampler{.num_replicas = 0}.order(2, g); });
}

TEST(DataSampler, Buckets) {
  std::vector<int64_t> lengths(100);
  for (size_t i = 0; i < 100; ++i) lengths[i] = int64_t(i * 37 % 100);
  const data::BucketSampler sampler(lengths, {.batch_size = 8});
  Generator g(1);
  std::set<int64_t> seen;
  for (const auto& batch : sampler.batches(100, g)) {
    int64_t low = 1000, high = 0;
    for (const int64_t i : batch) {
      low = std::min(low, lengths[size_t(i)]);
      high = std::max(high, lengths[size_t(i)]);
      seen.insert(i);
    }
    EXPECT_LE(high - low, 8);
  }
  EXPECT_EQ(seen.size(), 100u);
  data::DataLoader loader(Naturals{100}, {.batch_sampler = sampler, .num_workers = 2});
  EXPECT_EQ(loader.size(), 13);
  int64_t items = 0;
  for (const Tensor& x : loader) items += x.numel();
  EXPECT_EQ(items, 100);
  refused(Error::Kind::shape, [&] { (void)sampler.batches(99, g); });
  refused(Error::Kind::argument, [&] { data::BucketSampler(lengths, {.batch_size = 0}); });
  EXPECT_EQ((data::BucketSampler(lengths, {.batch_size = int64_t(1) << 60, .batches_per_bucket = 1 << 30})
                 .batches(100, g)
                 .size()),
            1u);
}

TEST(DataSampler, OfOnesOwn) {
  struct Backwards {
    std::vector<int64_t> order(int64_t size, Generator&) const {
      std::vector<int64_t> v(static_cast<size_t>(size));
      std::iota(v.rbegin(), v.rend(), 0);
      return v;
    }
  };
  data::DataLoader loader(Naturals{}, {.batch_size = 10, .sampler = Backwards{}});
  EXPECT_EQ(loader.size(), 1);
  EXPECT_EQ((*loader.begin()).to_vector<int64_t>()[0], 9);
}
