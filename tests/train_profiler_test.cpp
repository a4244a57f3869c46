// The profiler: what it sees, what it shows, and that it changes nothing.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <volta/volta.h>

#include "backend/backend.h"
#include "core/profile.h"
#include "toy_device.h"

namespace volta::test {
namespace {

// JSON of RFC 8259, strictly; counts the objects by the text of a member.
class StrictJson {
 public:
  explicit StrictJson(std::string text) : text_(std::move(text)) {
    value();
    space();
    if (at_ != text_.size()) fail("text after the end");
  }
  std::map<std::string, int> strings;  // how often each occurs
  int objects = 0;

 private:
  [[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error(why + " at " + std::to_string(at_) + ": " + text_.substr(at_, 40));
  }
  char peek() { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  void expect(char c) {
    space();
    if (peek() != c) fail(std::string("no ") + c);
    ++at_;
  }
  void value() {
    space();
    const char c = peek();
    if (c == '{') list('}', [&] { member(); }), ++objects;
    else if (c == '[') list(']', [&] { value(); });
    else if (c == '"') string();
    else if (c == '-' || std::isdigit(c)) number();
    else word();
  }
  template <class F> void list(char end, F item) {
    ++at_;
    space();
    if (peek() == end) {
      ++at_;
      return;
    }
    for (;;) {
      item();
      space();
      if (peek() == end) break;
      expect(',');
    }
    ++at_;
  }
  void member() {
    space();
    string();
    expect(':');
    value();
  }
  void string() {
    if (peek() != '"') fail("no string");
    std::string out;
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= text_.size() || uint8_t(peek()) < 0x20) fail("a bare control character");
      if (peek() == '\\') {
        ++at_;
        if (std::string_view("\"\\/bfnrtu").find(peek()) == std::string_view::npos) fail("a bad escape");
        if (peek() == 'u') {
          for (int i = 0; i < 4; ++i)
            if (!std::isxdigit(uint8_t(text_[++at_]))) fail("a bad escape");
          out += '?';
          continue;
        }
      }
      out += peek();
    }
    ++at_;
    ++strings[out];
  }
  void digits() {
    if (!std::isdigit(peek())) fail("no digit");
    while (std::isdigit(peek())) ++at_;
  }
  void number() {
    if (peek() == '-') ++at_;
    if (peek() == '0') ++at_;
    else digits();
    if (peek() == '.') ++at_, digits();
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
  }
  void word() {
    for (const char* w : {"true", "false", "null"})
      if (text_.compare(at_, std::strlen(w), w) == 0) {
        at_ += std::strlen(w);
        return;
      }
    fail("no value");
  }
  std::string text_;
  size_t at_ = 0;
};

class ProfilerTrace : public ::testing::Test {
 protected:
  ProfilerTrace()
      : path((std::filesystem::temp_directory_path() / ("volta_trace_" + std::to_string(::getpid()) + ".json"))
                 .string()) {}
  ~ProfilerTrace() override { std::filesystem::remove(path); }
  StrictJson written(const Profiler& p) const {
    p.write_trace(path);
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return StrictJson(text.str());
  }
  std::string path;
};

std::optional<ProfileRow> row(const Profiler& p, const std::string& name, const std::string& kind = "op") {
  for (const ProfileRow& r : p.rows())
    if (r.name == name && r.kind == kind) return r;
  return {};
}
int64_t calls(const Profiler& p, const std::string& name, const std::string& kind = "op") {
  const auto r = row(p, name, kind);
  return r ? r->calls : 0;
}

TEST(ProfilerOps, AreCountedByName) {
  const Tensor a = rand({16, 16}), b = rand({16, 16});
  Profiler p;
  for (int i = 0; i < 5; ++i) (void)(a + b);
  (void)matmul(a, b);
  (void)a.softmax(1);
  (void)a.sum();
  (void)a.max(1);
  (void)a.cumsum(0);
  (void)rand({4});
  (void)a.sort(1);
  EXPECT_EQ(calls(p, "add"), 5);
  EXPECT_EQ(row(p, "add")->bytes, 5 * 16 * 16 * 4);
  for (const char* name : {"matmul", "softmax", "sum", "max", "cumsum", "uniform", "sort"})
    EXPECT_EQ(calls(p, name), 1) << name;
  p.stop();
  (void)(a + b);
  EXPECT_EQ(calls(p, "add"), 5);
  for (const ProfileRow& r : p.rows()) {
    EXPECT_GE(r.total, r.self);
    EXPECT_GE(r.self, 0);
  }
}

TEST(ProfilerOps, OffWhenNobodyLives) {
  EXPECT_FALSE(profile::on());
  {
    Profiler outer;
    {
      Profiler inner;
      EXPECT_TRUE(profile::on());
    }
    EXPECT_TRUE(profile::on());
    outer.stop();
    outer.stop();
    EXPECT_FALSE(profile::on());
  }
  EXPECT_FALSE(profile::on());
}

struct Net {
  nn::Conv2d conv{1, 4, 3};
  nn::BatchNorm2d norm{4};
  nn::Linear out{4 * 6 * 6, 3};
  Tensor operator()(const Tensor& x) const { return out(norm(conv(x)).relu().flatten(1)); }
};

TEST(ProfilerOps, ChangesNothing) {
  const auto trained = [](bool profiled) {
    manual_seed(4);
    Net net;
    optim::Adam adam(parameters(net), {.lr = 0.01});
    std::optional<Profiler> p;
    if (profiled) p.emplace();
    for (int i = 0; i < 3; ++i) {
      adam.zero_grad();
      cross_entropy(net(randn({5, 1, 8, 8})), randint(0, 3, {5})).backward();
      adam.step();
    }
    if (p) {
      for (const char* name :
           {"conv", "conv_weight", "norm", "norm_backward", "cross_entropy", "cross_entropy_backward", "index_range"})
        EXPECT_GE(calls(*p, name), 3) << name << "\n" << p->table({.top = 100});
    }
    return net.conv.weight.detach().clone();
  };
  EXPECT_TRUE(equal(trained(false), trained(true)));
}

TEST(ProfilerOps, BackwardNodesBearTheNameOfTheirOp) {
  const Tensor w = rand({8, 8}, {.requires_grad = true});
  Profiler p;
  const Tensor y = (w.exp() * w).sum();
  EXPECT_EQ(calls(p, "backward", "backward"), 0);
  y.backward();
  EXPECT_EQ(calls(p, "backward", "backward"), 1);
  for (const char* name : {"exp", "mul", "sum"}) EXPECT_EQ(calls(p, name, "backward"), 1) << p.table();
  const auto pass = *row(p, "backward", "backward");
  double inside = 0;
  for (const char* name : {"exp", "mul", "sum"}) inside += row(p, name, "backward")->total;
  EXPECT_LE(inside, pass.total);
  EXPECT_GT(pass.bytes, 0);
}

TEST(ProfilerOps, ScopesNest) {
  { const ProfileScope off("nobody sees it"); }
  Profiler p;
  {
    const ProfileScope outer("outer");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (int i = 0; i < 2; ++i) {
      const ProfileScope inner("inner");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      (void)rand({1000});
    }
  }
  const auto outer = *row(p, "outer", "scope"), inner = *row(p, "inner", "scope");
  EXPECT_EQ(inner.calls, 2);
  EXPECT_GE(inner.total, 4e-3);
  EXPECT_GE(outer.self, 2e-3);
  EXPECT_NEAR(outer.total - outer.self, inner.total, 1e-9);
  EXPECT_EQ(outer.bytes, inner.bytes);
  EXPECT_EQ(inner.bytes, 8000);
  EXPECT_EQ(calls(p, "nobody sees it", "scope"), 0);
}

TEST(ProfilerOps, ErrorsLeaveItWhole) {
  Profiler p;
  {
    const ProfileScope around("around");
    for (int i = 0; i < 3; ++i) EXPECT_THROW((void)matmul(rand({2, 3}), rand({2, 3})), Error);
    EXPECT_THROW((void)embedding(tensor({7}), rand({2, 3})), Error);
    const Tensor w = rand({2}, {.requires_grad = true});
    const Tensor middle = w * 2;
    middle.register_hook(
        [](const Tensor&) -> std::optional<Tensor> { throw Error(Error::Kind::argument, "hook", "no"); });
    EXPECT_THROW(middle.sum().backward(), Error);
  }
  (void)(rand({3}) + 1);
  EXPECT_EQ(calls(p, "around", "scope"), 1);
  EXPECT_EQ(calls(p, "backward", "backward"), 1);
}

TEST(ProfilerOps, BeginningAndEndWithinARegion) {
  auto early = std::make_unique<ProfileScope>("before");
  Profiler p;
  auto late = std::make_unique<ProfileScope>("cut");
  (void)(rand({3}) + 1);
  early.reset();
  p.stop();
  late.reset();
  EXPECT_EQ(calls(p, "before", "scope"), 0);
  EXPECT_EQ(calls(p, "cut", "scope"), 0);
  EXPECT_EQ(calls(p, "add"), 1);
}

TEST(ProfilerOps, DevicesAreTold) {
  const Tensor x = rand({4, 4}).to(toy_device());
  Profiler p;
  (void)(x + x);
  EXPECT_GE(calls(p, "add"), 1);
  EXPECT_EQ(p.memory(toy_device()).by_op.at(0).name, "add");
  EXPECT_TRUE(p.memory(Device("cpu")).current >= 0);
}

// A backend is timed as long as somebody listens, and no longer.
TEST(ProfilerOps, LeavesTheBackendAsItWas) {
  const Backend* const plain = &backend(Device());
  {
    Profiler outer;
    const Backend* const timed = &backend(Device());
    EXPECT_NE(timed, plain);
    { Profiler inner; }
    EXPECT_EQ(&backend(Device()), timed);
  }
  EXPECT_EQ(&backend(Device()), plain);
}

TEST(ProfilerTable, SortsAndCuts) {
  const Tensor a = rand({64, 64});
  Profiler p;
  for (int i = 0; i < 9; ++i) (void)(a + 1);
  (void)matmul(a, a);
  const std::string by_calls = p.table({.sort_by = "calls", .top = 1});
  EXPECT_NE(by_calls.find("add"), std::string::npos);
  EXPECT_EQ(by_calls.find("matmul"), std::string::npos);
  EXPECT_NE(by_calls.find("and 1 more"), std::string::npos);
  const std::string by_name = p.table({.sort_by = "name"});
  EXPECT_LT(by_name.find("add"), by_name.find("matmul"));
  for (const char* how : {"total", "self", "average", "memory"})
    EXPECT_NE(p.table({.sort_by = how}).find("share"), std::string::npos);
  EXPECT_THROW((void)p.table({.sort_by = "luck"}), Error);
  EXPECT_THROW((void)p.table({.top = -1}), Error);
  EXPECT_THROW(Profiler({.max_events = -1}), Error);
  Profiler empty;
  EXPECT_NE(empty.table().find("name"), std::string::npos);
}

TEST(ProfilerMemory, HooksOfGradientsBelongToTheBackward) {
  constexpr int64_t size = 1 << 20;
  const Tensor w = rand({size}, {.requires_grad = true});
  w.register_hook([](const Tensor& g) { return g * 2; });
  const Tensor y = w.sum();  // its rule makes a view
  const int64_t before = memory::stats().in_use;
  Profiler p;
  y.backward();
  EXPECT_GE(p.memory().peak_backward, before + size * 4);
}

TEST(ProfilerMemory, PeaksForwardAndBackward) {
  constexpr int64_t size = 1 << 20;
  const Tensor w = rand({size}, {.requires_grad = true});
  const int64_t before = memory::stats().in_use;
  Profiler p;
  const Tensor y = (w.exp() * w.sin()).sum();
  const MemoryReport forward = p.memory();
  EXPECT_GE(forward.peak_forward, before + 3 * size * 4);
  EXPECT_EQ(forward.peak_backward, 0);
  EXPECT_EQ(forward.peak, forward.peak_forward);
  y.backward();
  const MemoryReport all = p.memory();
  EXPECT_GE(all.peak_backward, before + 3 * size * 4);
  EXPECT_EQ(all.peak, std::max(all.peak_forward, all.peak_backward));
  EXPECT_NEAR(double(all.current), double(memory::stats().in_use), 4096);
  const auto found = std::find_if(all.by_op.begin(), all.by_op.end(), [](auto& o) { return o.name == "exp"; });
  ASSERT_NE(found, all.by_op.end());
  EXPECT_GE(found->bytes, size * 4);
  EXPECT_TRUE(std::is_sorted(all.by_op.begin(), all.by_op.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; }));
  EXPECT_NE(all.str().find("peak in backward"), std::string::npos);
  EXPECT_EQ(p.memory(Device(DeviceType::cuda, 7)).peak, 0);
}

TEST_F(ProfilerTrace, IsStrictJson) {
  Profiler p;
  const Tensor w = rand({8, 8}, {.requires_grad = true});
  for (const std::string name : {"quote \" and \\", "line\nbreak\ttab", "bad \xFF\xC0\xAF byte", "grün ✓", ""}) {
    const ProfileScope scope(name);
    matmul(w, w).sum().backward();
  }
  StrictJson json = written(p);
  EXPECT_EQ(json.strings["quote \" and \\"], 1);
  EXPECT_EQ(json.strings["grün ✓"], 1);
  EXPECT_EQ(json.strings["line?break?tab"], 1);
  EXPECT_GE(json.strings["matmul"], 10);
  EXPECT_GE(json.strings["backward"], 10);
  EXPECT_GE(json.strings["memory of cpu"], 5);
  Profiler none;
  EXPECT_EQ(written(none).objects, 3);
}

TEST_F(ProfilerTrace, TellsThreadsApart) {
  Profiler p;
  const auto work = [] { (void)(ones({4}) + 1); };
  work();
  for (int i = 0; i < 2; ++i) std::thread(work).join();
  p.write_trace(path);
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string trace = text.str(), key = "\"tid\":";
  std::set<std::string> numbers;
  for (size_t at = trace.find(key); at != std::string::npos; at = trace.find(key, at + 1))
    numbers.insert(trace.substr(at + key.size(), trace.find_first_of(",}", at) - at - key.size()));
  EXPECT_GE(numbers.size(), 3u) << trace;
}

TEST_F(ProfilerTrace, KeepsSoManyEventsAndCountsAll) {
  Profiler p({.max_events = 10});
  for (int i = 0; i < 100; ++i) (void)(rand({4}) + 1);
  EXPECT_EQ(calls(p, "add"), 100);
  EXPECT_GT(p.dropped(), 100);
  EXPECT_LE(written(p).objects, 3 + 2 * 10);
}

TEST_F(ProfilerTrace, FilesThatCannotBeWritten) {
  Profiler p;
  EXPECT_THROW(p.write_trace("/nowhere/at/all.json"), Error);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(p.write_trace("/dev/full"), Error);
  }
}

// Profilers come and go while other threads compute: results stay, and each finds whole events.
TEST(ProfilerThreads, ComeAndGoWhileOthersCompute) {
  const Tensor w = rand({16, 16}, {.requires_grad = true}), x = rand({16, 16});
  const Tensor want = grad(matmul(x, w).tanh().sum(), w);
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t)
    workers.emplace_back([&] {
      while (!done) {
        const ProfileScope scope("work");
        wrong += !equal(grad(matmul(x, w).tanh().sum(), w), want);
      }
    });
  std::vector<std::thread> watchers;
  for (int t = 0; t < 2; ++t)
    watchers.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        Profiler p;
        for (int k = 0; k < 5; ++k) (void)p.table();
        (void)matmul(x, x);
        (void)p.memory();
        wrong += calls(p, "matmul") < 1;
        if (i % 2) p.stop();
      }
    });
  for (std::thread& t : watchers) t.join();
  done = true;
  for (std::thread& t : workers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(profile::on());
}

}  // namespace
}  // namespace volta::test
