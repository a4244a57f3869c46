// Sizes, paddings, dilations, strides and lengths near 2^31, 2^45, 2^62 and 2^63: a result or an Error, soon.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include <volta/volta.h>

#include "core/thread_end.h"
#include "data_common.h"

namespace volta::test {
namespace {

constexpr int64_t Max = std::numeric_limits<int64_t>::max();
constexpr int64_t large[] = {int64_t(1) << 31, int64_t(1) << 45, int64_t(1) << 61, int64_t(1) << 62, Max - 1, Max};

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Ends soon, and in a result or an Error. Memory is limited, so that what would fit a large machine ends here too.
class HostileSizes : public testing::Test {
 protected:
  void SetUp() override { memory::set_limit(memory::stats().in_use + (int64_t(1) << 30)); }
  void TearDown() override { memory::set_limit(Max); }

  static void ends(const std::string& what, const std::function<Tensor()>& f) {
    const double time = seconds([&] {
      try {
        const Tensor y = f();
        EXPECT_LT(y.numel(), int64_t(1) << 30) << what;
      } catch (const Error& e) {
        EXPECT_NE(e.kind(), Error::Kind::internal) << what << ": " << e.what();
      }
    });
    EXPECT_LT(time, 20) << what;  // generous: sanitizers and busy machines
  }
  static void refuses(const std::string& what, const std::function<Tensor()>& f) {
    EXPECT_LT(seconds([&] { EXPECT_THROW(f(), Error) << what; }), 20) << what;
  }
};

TEST_F(HostileSizes, Convolution) {
  const Tensor x = rand({1, 2, 5, 5}), w = rand({2, 2, 3, 3});
  for (const int64_t n : large) {
    const std::string at = " " + std::to_string(n);
    if (n > int64_t(1) << 31) {
      refuses("padding" + at, [&] { return conv2d(x, w, {}, {.padding = n}); });
      refuses("transposed, stride" + at, [&] { return conv_transpose2d(x, w, {}, {.stride = n}); });
      refuses("transposed, dilation" + at, [&] { return conv_transpose2d(x, w, {}, {.dilation = n}); });
    }
    refuses("dilation" + at, [&] { return conv2d(x, w, {}, {.dilation = n}); });
    refuses("groups" + at, [&] { return conv2d(x, w, {}, {.groups = n}); });
    refuses("transposed, groups" + at, [&] { return conv_transpose2d(x, w, {}, {.groups = n}); });
    refuses("transposed, padding" + at, [&] { return conv_transpose2d(x, w, {}, {.padding = n}); });
    refuses("transposed, output_padding" + at, [&] { return conv_transpose2d(x, w, {}, {.output_padding = n}); });
    ends("padding and dilation" + at, [&] { return conv2d(x, w, {}, {.padding = n, .dilation = n}); });
    ends("stride" + at, [&] { return conv2d(x, w, {}, {.stride = n, .padding = 1}); });
    ends("same, dilation" + at, [&] { return conv2d(x, w, {}, {.padding = "same", .dilation = n}); });
    ends("stride and padding" + at, [&] { return conv2d(x, w, {}, {.stride = n, .padding = n / 4}); });
    ends("transposed, all" + at, [&] {
      return conv_transpose2d(x, w, {}, {.stride = n, .padding = n, .output_padding = n - 1, .dilation = n});
    });
    nn::Conv2d same(2, 2, 3, {.padding = "same", .dilation = n, .padding_mode = "replicate"});
    ends("layer" + at, [&] { return same(x); });
    nn::ConvTranspose2d up(2, 2, 3, {.stride = 2});
    ends("output_size" + at, [&] { return up(x, {n, n}); });
    nn::ConvTranspose2d far(2, 2, 3, {.stride = n, .padding = n, .dilation = n});
    ends("output_size of a layer" + at, [&] { return far(x, {7, 7}); });
  }
}

// A kernel that reaches far beyond the input: its outer taps see padding only.
TEST_F(HostileSizes, FarTapsSeePadding) {
  const Tensor x = rand({2, 3, 6}, {f64}), w = rand({4, 3, 3}, {f64}), b = rand({4}, {f64});
  for (const int64_t dilation : {int64_t(500), int64_t(1) << 20, int64_t(1) << 40, int64_t(1) << 55}) {
    const Tensor leaf = x.clone().requires_grad_(), weight = w.clone().requires_grad_();
    const Tensor y = conv1d(leaf, weight, b, {.padding = "same", .dilation = dilation});
    EXPECT_TRUE(allclose(y, conv1d(x, w.narrow(2, 1, 1), b)));
    const auto d = grad(y.square().sum(), {leaf, weight});
    const Tensor own = x.clone().requires_grad_(), middle = w.narrow(2, 1, 1).clone().requires_grad_();
    const auto wanted = grad(conv1d(own, middle, b).square().sum(), {own, middle});
    EXPECT_TRUE(allclose(d[0], wanted[0]));
    EXPECT_TRUE(allclose(d[1].narrow(2, 1, 1), wanted[1]));
    EXPECT_EQ(d[1].count_nonzero().item<int64_t>(), 12);
    // Its transpose likewise: <conv(x), g> = <x, conv_transpose(g)>.
    const Tensor g = rand(y.shape(), {f64}),
                 back = conv_transpose1d(g, w, {}, {.padding = dilation, .dilation = dilation});
    EXPECT_EQ(back.shape(), x.shape());
    const Tensor plain = conv1d(x, w, {}, {.padding = "same", .dilation = dilation});
    EXPECT_NEAR((plain * g).sum().item<double>(), (x * back).sum().item<double>(), 1e-9);
  }
  // No tap sees anything; one sees the last elements alone.
  EXPECT_TRUE(equal(conv1d(x, w, b, {.stride = 1 << 20, .padding = 1 << 19, .dilation = 1 << 10}),
                    b.reshape({1, 4, 1}).expand({2, 4, 1})));
  const Tensor one = conv1d(x, w.narrow(2, 0, 2), {}, {.stride = 4000, .padding = 1000, .dilation = 1003});
  EXPECT_TRUE(allclose(one, conv1d(x.narrow(2, 3, 1), w.narrow(2, 1, 1))));
}

// As it was reported: outputs that lie further apart than the kernel reaches, whose gradient had a pass for every phase of
// the stride.
TEST_F(HostileSizes, GradientOfLargeStrides) {
  for (const int64_t stride : {int64_t(7), int64_t(1000), int64_t(1) << 40, Max}) {
    const Tensor x = rand({1, 2, 9, 9}, {f64}).requires_grad_(), w = rand({3, 2, 2, 2}, {f64}).requires_grad_();
    const Tensor y = conv2d(x, w, {}, {.stride = stride});
    EXPECT_LT(seconds([&] {
                const auto d = grad(y.sum(), {x, w});
                EXPECT_NEAR(d[0].sum().item<double>(), w.sum().item<double>() * double(y.numel()) / 3, 1e-9);
              }),
              20);
  }
  const Tensor x = rand({1, 1, 2, 2}), w = rand({1, 2, 2, 2}), b = rand({2});
  const Tensor y = conv_transpose2d(x, w, b, {.stride = 1000});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1002, 1002}));
  const auto at = [](const Tensor& t, const Shape& place) {
    Tensor one = t;
    for (const int64_t i : place) one = one.select(0, i);
    return one.item<float>();
  };
  EXPECT_FLOAT_EQ(at(y, {0, 1, 1001, 1000}), at(x, {0, 0, 1, 1}) * at(w, {0, 1, 1, 0}) + at(b, {1}));
  EXPECT_EQ(at(y, {0, 1, 500, 500}), at(b, {1}));
}

TEST_F(HostileSizes, Pools) {
  const Tensor x = rand({1, 2, 6});
  for (const int64_t n : large) {
    const std::string at = " " + std::to_string(n);
    refuses("adaptive_avg_pool1d" + at, [&] { return adaptive_avg_pool1d(x, n); });
    refuses("adaptive_max_pool1d" + at, [&] { return adaptive_max_pool1d(x, n); });
    refuses("adaptive_avg_pool2d" + at, [&] { return adaptive_avg_pool2d(rand({1, 4, 4}), {n, n}); });
    refuses("max_pool1d, kernel" + at, [&] { return max_pool1d(x, n); });
    refuses("avg_pool1d, padding" + at, [&] { return avg_pool1d(x, 2, {.padding = n}); });
    refuses("avg_pool1d, kernel and padding" + at, [&] { return avg_pool1d(x, n, {.stride = 1, .padding = n / 2}); });
    ends("max_pool1d, stride" + at, [&] { return max_pool1d(x, 2, {.stride = n}); });
    refuses("max_pool1d, dilation" + at, [&] { return max_pool1d(x, 2, {.dilation = n}); });
    refuses("lp_pool1d" + at, [&] { return lp_pool1d(x, 2, n); });
    ends("max_unpool1d" + at, [&] { return max_unpool1d(x, zeros({1, 2, 6}, {i64}), 2, {.stride = n}); });
    ends("local_response_norm" + at, [&] { return local_response_norm(x, n); });
  }
  // A window that is larger than the input sees all of it, or what begins within.
  const int64_t wide = (int64_t(1) << 31) - 2;
  EXPECT_TRUE(
      equal(max_pool1d(x, wide, {.stride = 3, .padding = wide / 2}), max_pool1d(x, 12, {.stride = 3, .padding = 6})));
  EXPECT_TRUE(allclose(avg_pool1d(x, 10, {.stride = 1, .padding = 5, .count_include_pad = false}),
                       stack({x.narrow(2, 0, 5).mean(2), x.mean(2), x.mean(2), x.mean(2), x.mean(2), x.mean(2),
                              x.narrow(2, 1, 5).mean(2)},
                             2)));
}

TEST_F(HostileSizes, Resampling) {
  const Tensor x = rand({1, 1, 4, 4});
  for (const int64_t n : large) {
    const std::string at = " " + std::to_string(n);
    for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic", "area"}) {
      refuses(mode + at, [&] { return interpolate(x, {.size = {n, n}, .mode = mode}); });
      refuses(mode + at, [&] { return interpolate(x, {.size = {1, n}, .mode = mode}); });
    }
    refuses("scale_factor" + at, [&] { return interpolate(x, {.scale_factor = {double(n)}}); });
    refuses("affine_grid" + at, [&] { return affine_grid(rand({1, 2, 3}), {1, 1, n, n}); });
    refuses("im2col, padding" + at, [&] { return im2col(x, 2, {.padding = n}); });
    refuses("im2col, dilation" + at, [&] { return im2col(x, 2, {.dilation = n}); });
    refuses("im2col, all" + at, [&] { return im2col(x, n, {.dilation = n, .padding = n}); });
    ends("im2col, stride" + at, [&] { return im2col(x, 2, {.stride = n}); });
    refuses("col2im" + at, [&] { return col2im(rand({1, 4, 9}), {n, n}, 2); });
    refuses("col2im, padding" + at, [&] { return col2im(rand({1, 4, 9}), {4, 4}, 2, {.padding = n}); });
    refuses("col2im, empty" + at, [&] { return col2im(zeros({1, 0, 9}), {4, 4}, n, {.padding = n}); });
    refuses("pixel_shuffle" + at, [&] { return pixel_shuffle(x, n); });
    refuses("pixel_unshuffle" + at, [&] { return pixel_unshuffle(x, n); });
    ends("pixel_unshuffle, empty" + at, [&] { return pixel_unshuffle(zeros({1, 2, 0, 0}), n); });
  }
  refuses("a factor whose square is 2^64", [&] { return pixel_shuffle(x, int64_t(1) << 32); });
  // Many taps of few windows: as many steps as windows.
  const Tensor big = rand({1, 1, 600, 600}), columns = im2col(big, 600);
  EXPECT_TRUE(equal(columns.flatten(), big.flatten()));
  EXPECT_TRUE(equal(col2im(columns, {600, 600}, 600), big));
}

TEST_F(HostileSizes, Selection) {
  const auto refused = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.kind() == Error::Kind::memory;
    }
    return false;
  };
  for (const int64_t n : {int64_t(1) << 28, int64_t(1) << 45, int64_t(1) << 58}) {
    const Tensor x = zeros({1}).expand({n});
    EXPECT_TRUE(refused([&] { (void)kthvalue(x, 1); })) << n;
    EXPECT_TRUE(refused([&] { (void)topk(x, 3); })) << n;
    EXPECT_TRUE(refused([&] { (void)median(x, 0); })) << n;
  }
}

// What cannot be, or has no elements, is known before tables of it are made.
TEST_F(HostileSizes, AdaptiveTablesAreBoundedFirst) {
  const auto soon = [](const std::function<void()>& f) { EXPECT_LT(seconds(f), 1); };
  constexpr int64_t many = int64_t(1) << 31;
  const Tensor none = zeros({0, 1, 5}).requires_grad_(), one = ones({1, 1, 5});
  soon([&] {
    const Tensor y = adaptive_avg_pool1d(none, many);
    EXPECT_EQ(y.shape(), (Shape{0, 1, many}));
    EXPECT_EQ(grad(y.sum(), none).shape(), none.shape());
    EXPECT_EQ(adaptive_max_pool1d_with_indices(none, many).indices.shape(), y.shape());
    EXPECT_EQ(interpolate(none, {.size = many, .mode = "area"}).shape(), y.shape());
    EXPECT_EQ(interpolate(none, {.size = many, .mode = "linear"}).shape(), y.shape());
  });
  for (const int64_t n : {int64_t(1) << 26, int64_t(1) << 27, many}) {
    soon([&] { EXPECT_THROW(adaptive_avg_pool1d(one, n), Error); });
    soon([&] { EXPECT_THROW(adaptive_max_pool1d(one, n), Error); });
    soon([&] { EXPECT_THROW(interpolate(one, {.size = n, .mode = "area"}), Error); });
  }
  const Tensor x = rand({2, 13}, {f64}).requires_grad_();
  const Tensor empty = adaptive_avg_pool1d(x, 0);
  EXPECT_TRUE(equal(grad(empty.sum(), x), zeros_like(x)));
  for (int64_t in = 1; in < 14; ++in)
    for (int64_t out = 1; out < 30; ++out) {
      const Tensor part = x.narrow(1, 0, in).detach(), y = adaptive_max_pool1d(part, out);
      for (int64_t j = 0; j < out; ++j) {
        const int64_t begin = j * in / out, end = ((j + 1) * in + out - 1) / out;
        EXPECT_TRUE(equal(y.select(1, j), part.narrow(1, begin, end - begin).amax(1))) << in << " " << out;
      }
    }
}

TEST_F(HostileSizes, DifferencesOfAnOrderBeyondTheAxis) {
  const Tensor x = rand({2, 1 << 16}).requires_grad_();
  for (const int64_t n : large) {
    Tensor y;
    EXPECT_LT(seconds([&] { y = diff(x, n); }), 1);
    EXPECT_EQ(y.shape(), (Shape{2, 0}));
    EXPECT_TRUE(equal(grad(y.sum(), x), zeros_like(x)));
  }
}

TEST_F(HostileSizes, TriangleIndices) {
  for (const int64_t n : large) {
    refuses("tril_indices", [&] { return tril_indices(n, 3); });
    ends("triu_indices", [&] { return triu_indices(n, 3); });
    ends("tril_indices, wide", [&] { return tril_indices(3, n); });
    refuses("triu_indices, wide", [&] { return triu_indices(3, n); });
    refuses("triu_indices, square", [&] { return triu_indices(n, n, n - 1 - (int64_t(1) << 30)); });
  }
}

TEST_F(HostileSizes, Padding) {
  const Tensor x = rand({1, 2, 6});
  for (const int64_t n : large)
    for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
      const std::string at = std::string(mode) + " " + std::to_string(n);
      refuses(at, [&] { return pad(x, {n, n}, {.mode = mode}); });
      refuses(at, [&] { return pad(x, {0, n}, {.mode = mode}); });
      refuses(at, [&] { return pad(x, {-n, 0}, {.mode = mode}); });
      refuses(at, [&] { return pad(x, {-n, n}, {.mode = mode}); });
      refuses(at, [&] { return pad(x, {1, 1, n, n}, {.mode = mode}); });
    }
  const Tensor y = rand({2, 5}, {f64}).requires_grad_();
  EXPECT_TRUE(equal(pad(y, {-2, 3}, {.mode = "replicate"}), y.index_select(1, tensor({2, 3, 4, 4, 4, 4}))));
  EXPECT_TRUE(equal(pad(y, {3, -1}, {.mode = "replicate"}), y.index_select(1, tensor({0, 0, 0, 0, 1, 2, 3}))));
  EXPECT_TRUE(gradcheck([](const Tensor& t) { return pad(t, {2, 1, 1, 0}, {.mode = "replicate"}); }, y));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need all addresses
// Takes what the system gives but for so many blocks of 1 MiB, also what was freed before.
void leave_memory(size_t blocks) {
  std::vector<void*> taken;
  taken.reserve(1 << 16);
  while (taken.size() < taken.capacity()) {
    void* volatile block = std::malloc(1 << 20);
    if (!block) break;
    taken.push_back(static_cast<void*>(block));
  }
  for (; blocks > 0 && !taken.empty(); --blocks, taken.pop_back()) std::free(taken.back());
}

// Working memory that the system refuses is an Error of the op that was called.
TEST(HostileMemory, RefusedByTheSystemIsAnError) {
  const Tensor x = rand({1 << 22}), rows = rand({4, 1 << 20}), list = zeros({1 << 20}), one = ones({1, 1, 5});
  const Tensor offsets = zeros({1 << 23}, {i64}), image = rand({1, 4, 1 << 20}), kernel = rand({8, 4, 9});
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"sort", [&] { (void)sort(x); }},
      {"argsort", [&] { (void)argsort(x); }},
      {"argsort", [&] { (void)argsort(rows); }},
      {"topk", [&] { (void)topk(x, 1 << 19); }},
      {"median", [&] { (void)median(x); }},
      {"kthvalue", [&] { (void)kthvalue(x, 5); }},
      {"unique", [&] { (void)unique(x); }},
      {"quantile", [&] { (void)quantile(x, 0.5); }},
      {"isin", [&] { (void)isin(one, x); }},
      {"to_vector", [&] { (void)list.select(0, 0).expand({1 << 25}).to_vector<float>(); }},
      {"to_vector", [&] { (void)list.select(0, 0).expand({1 << 28}).to_vector<bool>(); }},
      {"adaptive_avg_pool1d", [&] { (void)adaptive_avg_pool1d(one, 1 << 22); }},
      {"interpolate", [&] { (void)interpolate(one, {.size = 1 << 22, .mode = "area"}); }},
      {"avg_pool1d", [&] { (void)avg_pool1d(image, 3, {.stride = 1}); }},
      {"unbind", [&] { (void)unbind(list); }},
      {"chunk", [&] { (void)chunk(list, 1 << 20); }},
      {"split", [&] { (void)split(list, 1); }},
      {"tensor_split", [&] { (void)tensor_split(list, 1 << 20); }},
      {"embedding_bag",
       [&] {
         (void)embedding_bag(tensor({0}), ones({1, 1}), offsets);
       }},
      {"conv1d", [&] { (void)conv1d(image, kernel, {}, {.algorithm = "im2col", .chunk = 1 << 30}); }},
  };
  memory::empty_cache();
  for (const auto& [op, call] : calls) {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = rlim_t(pages * sysconf(_SC_PAGESIZE)) + (rlim_t(48) << 20);
    const bool lacks = lacks_memory(most, [&, op = op, &call = call] {
      leave_memory(48);
      try {
        call();
      } catch (const Error& e) {
        if (e.op() == op) throw;
        std::fprintf(stderr, "%s, called as %s\n", e.what(), op);
        _exit(3);
      }
    });
    EXPECT_TRUE(lacks) << op;
  }
}

// Takes all that this thread can get, to the last bytes. What is taken is held by itself alone.
void leave_nothing() {
  void* last = nullptr;
  for (size_t bytes = size_t(1) << 20; bytes >= 16; bytes /= 2)
    while (void* block = std::malloc(bytes)) {
      *static_cast<void**>(block) = last;
      last = block;
    }
}

// A thread that has no memory left can say what is to happen when it ends: to register a destructor would end the process.
TEST(HostileMemory, AThreadWithoutAnyEndsAsItSaid) {
  static bool ended = false;
  static const AtThreadEnd end([](void* flag) { *static_cast<bool*>(flag) = true; });
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = rlim_t(pages * sysconf(_SC_PAGESIZE)) + (rlim_t(96) << 20);
  EXPECT_TRUE(lacks_memory(most, [&] {
    std::thread([] {
      leave_nothing();
      end.set(&ended);
    }).join();
    if (ended) _exit(7);
  }));
}

// What threads kept for themselves is there for others once they have ended.
TEST(HostileMemory, ThreadsThatEndGiveBackWhatTheyKept) {
  const auto work = [] {
    const Tensor x = rand({1, 8, 32, 32}), w = rand({8, 8, 3, 3});
    for (int i = 0; i < 3; ++i) (void)conv2d(x, w, {}, {.padding = 1}).sum().item<float>();
  };
  const auto resident = [] {
    int64_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  for (int i = 0; i < 20; ++i) std::thread(work).join();
  const int64_t before = resident(), in_use = memory::stats().in_use;
  for (int i = 0; i < 200; ++i) std::thread(work).join();
  EXPECT_EQ(memory::stats().in_use, in_use);
  EXPECT_LT(resident() - before, int64_t(16) << 20);
}
#endif

}  // namespace
}  // namespace volta::test
