// The loader: batches, orders, workers, errors, streams and the position.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include "data_common.h"
#include "samples.h"
#include "taken.h"

using namespace volta;
using namespace volta::test;
using data::DataLoader;

namespace {

struct Numbers10 {
  int64_t size() const { return 10; }
  Tensor get(int64_t i) const { return full({2}, double(i)); }
};
struct Noise {  // draws from the default generator, as a user's set may
  int64_t size() const { return 50; }
  std::tuple<Tensor, int64_t> get(int64_t i) const { return {rand({3}) + randn({3}), i}; }
};
struct Count {
  int64_t n = 10, at = 0, epoch = 0;
  std::optional<int64_t> next() { return at < n ? std::optional(at++ + 100 * epoch) : std::nullopt; }
  void reset(int64_t e) { at = 0, epoch = e; }
};

template <class L> std::vector<int64_t> firsts(L& loader) {
  std::vector<int64_t> seen;
  for (const Tensor& x : loader)
    for (int64_t i = 0; i < x.size(0); ++i) seen.push_back(int64_t(x.to_vector<double>()[size_t(i * 2)]));
  return seen;
}
template <class L> Tensor all_of(L& loader) {
  std::vector<Tensor> list;
  for (const Tensor& x : loader) list.push_back(x);
  return cat(list);
}

}  // namespace

TEST(DataLoader, BatchesInOrder) {
  DataLoader loader(Numbers10{}, {.batch_size = 4});
  EXPECT_EQ(loader.size(), 3);
  std::vector<Shape> shapes;
  for (const Tensor& x : loader) shapes.push_back(x.shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 2}, {4, 2}, {2, 2}}));
  std::vector<int64_t> order(10);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(firsts(loader), order);
}

TEST(DataLoader, DropLast) {
  DataLoader loader(Numbers10{}, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(firsts(loader).size(), 8u);
  EXPECT_EQ(DataLoader(Numbers10{}, {.batch_size = 11, .drop_last = true}).size(), 0);
}

TEST(DataLoader, ShufflesAnewInEachEpoch) {
  DataLoader a(Numbers10{}, {.batch_size = 3, .shuffle = true, .seed = 5});
  DataLoader b(Numbers10{}, {.batch_size = 3, .shuffle = true, .num_workers = 3, .seed = 5});
  const auto first = firsts(a), second = firsts(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_EQ(firsts(b), first);
  EXPECT_EQ(firsts(b), second);
}

TEST(DataLoader, SeedFollowsManualSeed) {
  const auto order = [](uint64_t seed) {
    manual_seed(seed);
    DataLoader loader(Numbers10{}, {.batch_size = 10, .shuffle = true});
    return firsts(loader);
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(DataLoader, RandomItemsDoNotDependOnWorkers) {
  std::vector<std::vector<float>> seen;
  for (const int workers : {0, 1, 2, 7}) {
    DataLoader loader(Noise{}, {.batch_size = 8, .shuffle = true, .num_workers = workers, .seed = 3});
    std::vector<float> values;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& [x, i] : loader) {
        const auto v = x.template to_vector<float>();
        values.insert(values.end(), v.begin(), v.end());
      }
    seen.push_back(values);
  }
  for (const auto& values : seen) EXPECT_EQ(values, seen[0]);
  EXPECT_EQ(std::set<float>(seen[0].begin(), seen[0].end()).size(), seen[0].size());  // items and epochs differ
}

// Guards hold for the thread that made them: whichever thread makes a batch, it is the same.
TEST(DataLoader, GuardsDoNotDependOnWorkers) {
  struct Made {
    int64_t size() const { return 2; }
    std::tuple<Tensor, double, Tensor> get(int64_t i) const {
      return {full({2}, 0.1), double(i) + 0.1, matmul(full({1, 1}, 1.0 + 0x1p-12), ones({1, 1}))};
    }
  };
  const auto dtypes = [](int workers) {
    for (auto [x, number, product] : DataLoader(Made{}, {.batch_size = 2, .num_workers = workers}))
      return std::vector<DType>{x.dtype(), number.dtype(), product.dtype()};
    return std::vector<DType>();
  };
  for (const int workers : {0, 1}) {
    {
      const DefaultDtype wide(f64);
      EXPECT_EQ(dtypes(workers), (std::vector<DType>{f64, f64, f64})) << workers;
    }
    const Autocast half(bf16);  // of the model, not of its data
    EXPECT_EQ(dtypes(workers), (std::vector<DType>{f32, f64, f32})) << workers;
  }
}

TEST(DataLoader, ConsumerKeepsItsGenerator) {
  manual_seed(7);
  const float expected = rand({1}).item<float>();
  manual_seed(7);
  DataLoader loader(Noise{}, {.batch_size = 8, .seed = 3});
  auto it = loader.begin();
  EXPECT_EQ(rand({1}).item<float>(), expected);
}

TEST(DataLoader, NothingRecordedForGradients) {
  struct Learned {
    Tensor w = ones({3}).requires_grad_();
    int64_t size() const { return 4; }
    Tensor get(int64_t) const { return w * 2; }
  };
  for (const int workers : {0, 2})
    for (const Tensor& x : DataLoader(Learned{}, {.batch_size = 2, .num_workers = workers}))
      EXPECT_FALSE(x.requires_grad());
}

TEST(DataLoader, TensorDatasetIsReadByWholeBatches) {
  const Tensor x = randn({20, 3, 2}), y = arange(20), transposed = randn({4, 20}).t();
  for (const int workers : {0, 2}) {
    DataLoader loader(data::TensorDataset(x, y, transposed),
                      {.batch_size = 6, .shuffle = true, .num_workers = workers, .seed = 1});
    int64_t items = 0;
    for (auto [a, b, c] : loader) {
      EXPECT_TRUE(equal(a, x.index_select(0, b)) && equal(c, transposed.index_select(0, b)));
      a.zero_();  // a batch is a copy
      items += b.numel();
    }
    EXPECT_EQ(items, 20);
  }
  EXPECT_GT(x.abs().sum().item<float>(), 0);
}

TEST(DataLoader, ErrorsNameTheItem) {
  struct Failing {
    int64_t size() const { return 100; }
    Tensor get(int64_t i) const {
      if (i == 41) throw Error(Error::Kind::io, "read_image", "cannot read x.png");
      if (i == 61) throw std::filesystem::filesystem_error("gone", std::error_code(2, std::generic_category()));
      if (i == 81) throw 5;
      if (i == 91) throw std::bad_alloc();
      return zeros({1});
    }
  };
  using Kind = Error::Kind;
  for (const int workers : {0, 3}) {
    const auto run = [&](int64_t from) {
      DataLoader loader(data::subset(Failing{},
                                     [&] {
                                       std::vector<int64_t> v(size_t(100 - from));
                                       std::iota(v.begin(), v.end(), from);
                                       return v;
                                     }()),
                        {.batch_size = 8, .num_workers = workers});
      for (const Tensor& x : loader) (void)x;
    };
    EXPECT_EQ(refused([&] { run(0); }, Kind::io), "DataLoader: item 41: read_image: cannot read x.png");
    EXPECT_TRUE(contains(refused([&] { run(50); }, Kind::io), "item 11: "));
    EXPECT_TRUE(contains(refused([&] { run(80); }, Kind::internal), "item 1: "));
    EXPECT_TRUE(contains(refused([&] { run(90); }, Kind::memory), "item 1: out of memory"));
  }
}

TEST(DataLoader, BatchesBeforeAnErrorArrive) {
  struct Failing : Numbers10 {
    Tensor get(int64_t i) const {
      if (i == 7) throw std::runtime_error("bad");
      return Numbers10::get(i);
    }
  };
  for (const int workers : {0, 4}) {
    DataLoader loader(Failing{}, {.batch_size = 2, .num_workers = workers});
    int n = 0;
    EXPECT_THROW(for (const Tensor& x : loader) n += int(x.size(0)), Error);
    EXPECT_EQ(n, 6);
    EXPECT_EQ(loader.state().batch, 3);
  }
}

TEST(DataLoader, RaggedItemsNameBoth) {
  struct Ragged {
    int64_t size() const { return 10; }
    Tensor get(int64_t i) const { return zeros({i < 5 ? 2 : 3}, {.dtype = i == 9 ? f64 : f32}); }
  };
  DataLoader loader(Ragged{}, {.batch_size = 4});
  const std::string why = refused(
      [&] {
        for (const Tensor& x : loader) (void)x;
      },
      Error::Kind::shape);
  EXPECT_TRUE(contains(why, "item 4 has shape [2] and item 5 shape [3]")) << why;
  DataLoader other(data::subset(Ragged{}, {8, 9}), {.batch_size = 2});
  EXPECT_TRUE(contains(refused(
                           [&] {
                             for (const Tensor& x : other) (void)x;
                           },
                           Error::Kind::dtype),
                       "f64"));
}

TEST(DataLoader, BadOptions) {
  const auto refuse = [](const data::LoaderOptions& o) {
    return refused([&] { DataLoader(Numbers10{}, o); }, Error::Kind::argument);
  };
  EXPECT_TRUE(contains(refuse({.batch_size = 0}), "batch_size"));
  EXPECT_TRUE(contains(refuse({.num_workers = -1}), "num_workers"));
  EXPECT_TRUE(contains(refuse({.num_workers = 100000}), "num_workers"));
  EXPECT_TRUE(contains(refuse({.prefetch_factor = 0}), "prefetch_factor"));
  EXPECT_TRUE(contains(refuse({.shuffle = true, .sampler = data::RandomSampler{}}), "shuffle"));
  EXPECT_TRUE(contains(refuse({.batch_size = 2, .batch_sampler = data::BucketSampler({1})}), "batch_sampler"));
  EXPECT_EQ(DataLoader(Numbers10{}, {.batch_size = std::numeric_limits<int64_t>::max()}).size(), 1);
  DataLoader far(Numbers10{}, {.sampler = std::vector<int64_t>{3, 10}});
  refused([&] { far.begin(); }, Error::Kind::index);
}

TEST(DataLoader, LeavingEarlyIsClean) {
  for (int round = 0; round < 50; ++round) {
    DataLoader loader(Noise{}, {.batch_size = 1, .num_workers = 4});
    int n = 0;
    for ([[maybe_unused]] const auto& batch : loader)
      if (++n == round % 5) break;
  }
  DataLoader loader(Noise{}, {.batch_size = 1, .num_workers = 4});
  auto it = loader.begin();  // never looked at
}

TEST(DataLoader, TheIteratorOutlivesTheLoader) {
  auto loader = std::make_unique<DataLoader<Numbers10>>(Numbers10{}, data::LoaderOptions{.num_workers = 2});
  auto it = loader->begin();
  loader.reset();
  int n = 0;
  for (; it != std::default_sentinel; ++it) ++n;
  EXPECT_EQ(n, 10);
}

TEST(DataLoader, PrefetchIsBounded) {
  struct Counting {
    std::shared_ptr<std::atomic<int>> begun = std::make_shared<std::atomic<int>>(0);
    int64_t size() const { return 1000; }
    int64_t get(int64_t i) const {
      ++*begun;
      return i;
    }
  };
  Counting set;
  DataLoader loader(set, {.batch_size = 1, .num_workers = 3, .prefetch_factor = 2});
  auto it = loader.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(set.begun->load(), 1 + 6);
}

TEST(DataLoader, PositionResumes) {
  for (const int workers : {0, 2}) {
    const data::LoaderOptions options{.batch_size = 8, .shuffle = true, .num_workers = workers, .seed = 11};
    DataLoader whole(Noise{}, options);
    std::vector<Tensor> expected;
    for (int epoch = 0; epoch < 3; ++epoch)
      for (const auto& [x, i] : whole) expected.push_back(x);
    ASSERT_EQ(expected.size(), 21u);
    EXPECT_EQ(whole.state(), (data::LoaderState{3, 0, 11}));

    for (const int stop : {1, 6, 7, 8, 14, 20}) {
      DataLoader first(Noise{}, options);
      data::LoaderState saved;
      int n = 0;
      while (n < stop)
        for ([[maybe_unused]] const auto& batch : first)
          if (++n == stop) {
            saved = first.state();
            break;
          }
      auto other = options;
      other.seed = 99;  // the state brings the seed
      other.num_workers = 2 - workers;
      DataLoader rest(Noise{}, other);
      rest.set_state(saved);
      while (n < 21)
        for (const auto& [x, i] : rest) ASSERT_TRUE(equal(x, expected[size_t(n++)])) << stop;
    }
  }
  DataLoader loader(Numbers10{});
  refused([&] { loader.set_state({.epoch = -1}); }, Error::Kind::argument);
  // Epochs and batches are counted on from there.
  refused([&] { loader.set_state({.epoch = std::numeric_limits<int64_t>::max()}); }, Error::Kind::argument);
  refused([&] { loader.set_state({.batch = std::numeric_limits<int64_t>::max()}); }, Error::Kind::argument);
  loader.set_state({.epoch = int64_t(1) << 62, .batch = int64_t(1) << 62});
  for (const Tensor& x : loader) FAIL() << x;
}

TEST(DataLoader, IteratorsAtTheEndAndCopies) {
  DataLoader loader(Numbers10{}, {.batch_size = 10});
  auto copy = loader;  // of one position
  auto it = loader.begin();
  (void)*it;
  EXPECT_EQ(copy.state(), loader.state());
  auto moved = volta::test::taken(it);
  ++moved;
  EXPECT_TRUE(moved == std::default_sentinel);
  refused([&] { (void)*moved; }, Error::Kind::index);
  refused([&] { (void)*++it; }, Error::Kind::index);
  decltype(loader)::Iterator none;
  refused([&] { (void)*++none; }, Error::Kind::index);
}

TEST(DataLoader, EmptyFunctionsAreRefused) {
  using Items = std::vector<Tensor>;
  const data::TensorDataset pairs(ones({4}), ones({4}));
  const std::function<Tensor(Items)> none;
  refused([&] { (void)DataLoader(data::map(Numbers10{}, [](const Tensor& x) { return x; }), {}, none); },
          Error::Kind::argument);
  const std::function<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)> nothing;
  refused([&] { (void)data::on_batch(nothing); }, Error::Kind::argument);
  refused([&] { (void)DataLoader(pairs, {}, data::detail::OnBatch<decltype(nothing)>{nothing}).begin(); },
          Error::Kind::argument);
}

TEST(DataLoader, AfterLeavingEarlyComesTheNextEpoch) {
  DataLoader loader(Numbers10{}, {.batch_size = 3, .shuffle = true, .seed = 1});
  for (const Tensor& x : loader) {
    (void)x;
    break;
  }
  EXPECT_EQ(loader.state().batch, 1);
  auto it = loader.begin();
  EXPECT_EQ(loader.state(), (data::LoaderState{1, 1, 1}));
}

TEST(DataLoader, SetsMayBeLargerThanMemory) {
  struct Endless {
    int64_t n = std::numeric_limits<int64_t>::max();
    int64_t size() const { return n; }
    int64_t get(int64_t i) const { return i; }
  };
  for (const int workers : {0, 2}) {
    DataLoader loader(Endless{}, {.batch_size = 3, .num_workers = workers});
    EXPECT_EQ(loader.size(), std::numeric_limits<int64_t>::max() / 3 + 1);
    loader.set_state({.batch = int64_t(1) << 60});
    EXPECT_EQ((*loader.begin()).to_vector<int64_t>()[1], 3 * (int64_t(1) << 60) + 1);
    DataLoader mixed(Endless{}, {.shuffle = true, .num_workers = workers});
    EXPECT_THROW(mixed.begin(), Error);
    DataLoader whole(Endless{}, {.batch_size = int64_t(1) << 62, .num_workers = workers});
    refused([&] { (void)*whole.begin(); }, Error::Kind::memory);
  }
  DataLoader negative(Endless{-1});
  refused([&] { negative.begin(); }, Error::Kind::argument);
  for (const Tensor& x : DataLoader(Endless{0}, {.shuffle = true, .num_workers = 2})) FAIL() << x;
}

TEST(DataLoader, NestedPassesAreIndependent) {
  DataLoader loader(Numbers10{}, {.batch_size = 5, .num_workers = 2});
  int n = 0;
  for (const Tensor& a : loader)
    for (const Tensor& b : loader) n += int(a.size(0) * b.size(0));
  EXPECT_EQ(n, 100);
}

TEST(DataLoader, Streams) {
  for (const int workers : {0, 3}) {
    DataLoader loader(Count{}, {.batch_size = 4, .num_workers = workers});
    EXPECT_EQ(all_of(loader).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(all_of(loader).to_vector<int64_t>()[9], 109);
    refused([&] { (void)loader.size(); }, Error::Kind::argument);
    DataLoader dropping(Count{}, {.batch_size = 4, .num_workers = workers, .drop_last = true});
    EXPECT_EQ(all_of(dropping).numel(), 8);
    DataLoader even(Count{12}, {.batch_size = 4, .num_workers = workers});
    EXPECT_EQ(all_of(even).numel(), 12);
    for (const Tensor& x : DataLoader(Count{0}, {.num_workers = workers})) FAIL() << x;

    DataLoader resumed(Count{}, {.batch_size = 4, .num_workers = workers});
    resumed.set_state({.epoch = 2, .batch = 2});
    EXPECT_EQ(all_of(resumed).to_vector<int64_t>(), (std::vector<int64_t>{208, 209}));
    EXPECT_EQ(resumed.state().epoch, 3);
  }
  refused([] { DataLoader(Count{}, {.shuffle = true}); }, Error::Kind::argument);
}

TEST(DataLoader, StreamsAreRandomAlike) {
  std::vector<std::vector<float>> seen;
  for (const int workers : {0, 1, 3}) {
    const auto noisy = data::map(Count{20}, [](int64_t i, Generator& g) { return rand({2}, {.generator = &g}) + i; });
    DataLoader loader(noisy, {.batch_size = 3, .num_workers = workers, .seed = 2});
    seen.push_back(all_of(loader).to_vector<float>());
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(DataLoader, StreamErrors) {
  struct Failing : Count {
    std::optional<int64_t> next() {
      if (at == 5) throw std::runtime_error("torn");
      return Count::next();
    }
  };
  for (const int workers : {0, 3}) {
    DataLoader loader(Failing{}, {.batch_size = 2, .num_workers = workers});
    int n = 0;
    const std::string why = refused(
        [&] {
          for (const Tensor& x : loader) n += int(x.numel());
        },
        Error::Kind::internal);
    EXPECT_EQ(why, "DataLoader: item 5: torn");
    EXPECT_EQ(n, 4);
  }
}

TEST(DataLoader, CollateOfOnesOwn) {
  struct Words {
    int64_t size() const { return 6; }
    Tensor get(int64_t i) const { return full({i + 1}, double(i)); }
  };
  const auto padded = [](const std::vector<Tensor>& items) {
    int64_t longest = 0;
    for (const Tensor& x : items) longest = std::max(longest, x.size(0));
    std::vector<Tensor> rows;
    for (const Tensor& x : items) rows.push_back(pad(x, {0, longest - x.size(0)}));
    return std::pair(stack(rows), int64_t(items.size()));
  };
  std::vector<int64_t> widths;
  for (auto [x, n] : DataLoader(Words{}, {.batch_size = 2, .num_workers = 2}, padded)) {
    EXPECT_EQ(n, 2);
    widths.push_back(x.size(1));
  }
  EXPECT_EQ(widths, (std::vector<int64_t>{2, 4, 6}));

  const auto noisy = [](const std::vector<Tensor>& items, Generator& g) {
    return rand({items.size()}, {.generator = &g});
  };
  DataLoader a(Words{}, {.batch_size = 2, .seed = 1}, noisy),
      b(Words{}, {.batch_size = 2, .num_workers = 2, .seed = 1}, noisy);
  EXPECT_TRUE(equal(all_of(a), all_of(b)));
}

TEST(DataLoader, OnBatch) {
  const data::TensorDataset set(arange(12).reshape({6, 2}), arange(6));
  for (const int workers : {0, 2})
    for (auto [x, y] : DataLoader(set, {.batch_size = 4, .num_workers = workers},
                                  data::on_batch([](const Tensor&a, const Tensor&b) { return std::tuple(a * 2, b); })))
      EXPECT_TRUE(equal(x.select(1, 0), y * 4));
}

// Batches come while the device is busy with work that was queued before, and their memory is used again while it still
// reads them.
TEST(DataLoader, DeviceOfBatches) {
  const Tensor items = rand({96, 40000}), labels = arange(96), sums = items.to(f64).sum(1);
  for (const Device& device : devices())
    for (const int workers : {0, 2}) {
      SCOPED_TRACE(device.str() + " " + std::to_string(workers));
      Tensor busy = rand({256, 256}, {f32, device});
      std::vector<Tensor> found, places;
      for (auto [x, y] : DataLoader(data::TensorDataset(items, labels),
                                    {.batch_size = 8, .num_workers = workers, .device = device})) {
        EXPECT_EQ(x.device(), device);
        EXPECT_EQ(y.device(), device);
        for (int i = 0; i < 20; ++i) busy = tanh(matmul(busy, busy));
        found.push_back(x.to(f64).sum(1));
        places.push_back(y);
      }
      EXPECT_TRUE(equal(cat(places).to("cpu"), labels));
      EXPECT_TRUE(allclose(cat(found).to("cpu"), sums, {.rtol = 1e-12}));
      EXPECT_TRUE(all(isfinite(busy)).item<bool>());
    }
}

TEST(DataLoader, MemoryStaysFlat) {
  DataLoader loader(Noise{}, {.batch_size = 8, .num_workers = 2, .seed = 1});
  for (const auto& batch : loader) (void)batch;
  const int64_t before = memory::stats().in_use;
  for (int i = 0; i < 20; ++i)
    for (const auto& [x, y] : loader)
      if (i % 2 && x.size(0) == 8) break;
  EXPECT_LE(memory::stats().in_use, before + (1 << 16));
}

TEST(DataLoader, ManyThreadsWithLoadersOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int64_t> items = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (const auto& [x, i] : DataLoader(Noise{}, {.batch_size = 7, .shuffle = true, .num_workers = 2}))
        items += i.numel();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(items.load(), 200);
}

TEST(DataCollate, Kinds) {
  EXPECT_EQ(data::default_collate(std::vector{1, 2}).dtype(), i64);
  EXPECT_EQ(data::default_collate(std::vector{1.f, 2.f}).dtype(), f32);
  EXPECT_EQ(data::default_collate(std::vector{1., 2.}).dtype(), f64);
  EXPECT_EQ(data::default_collate(std::vector<bool>{true, false}).dtype(), boolean);
  EXPECT_EQ(data::default_collate(std::vector<std::string>{"a", "b"})[1], "b");
  const auto [x, rest] = data::default_collate(
      std::vector{std::tuple(ones({2}), std::pair(1, 0.5)), std::tuple(zeros({2}), std::pair(2, 1.5))});
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_EQ(std::get<0>(rest).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::get<1>(rest).to_vector<double>(), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(data::default_collate(std::vector{ones({0, 3}), ones({0, 3})}).shape(), (Shape{2, 0, 3}));
  EXPECT_TRUE(equal(data::default_collate(std::vector{arange(6).reshape({2, 3}).t(), ones({3, 2}, {.dtype = i64})})[0],
                    arange(6).reshape({2, 3}).t()));
  refused([] { (void)data::default_collate(std::vector<Tensor>{}); }, Error::Kind::argument);
  refused([] { (void)data::default_collate(std::vector<Tensor>{Tensor()}); }, Error::Kind::argument);
}

struct Point {
  Tensor image, mask;
};
struct Labelled {
  Tensor image;
  int label;
};

TEST(DataCollate, Structs) {
  const Point batch = data::default_collate(std::vector<Point>{{ones({2}), zeros({3})}, {ones({2}), zeros({3})}});
  EXPECT_EQ(batch.mask.shape(), (Shape{2, 3}));
  const auto [image, label] = data::default_collate(std::vector<Labelled>{{ones({2}), 4}, {ones({2}), 5}});
  EXPECT_EQ(label.to_vector<int64_t>(), (std::vector<int64_t>{4, 5}));
}
