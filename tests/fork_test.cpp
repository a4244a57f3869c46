// fork(): children compute with a pool of their own, whatever the parent's threads were doing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include <volta/volta.h>

#include "core/fork.h"
#include "core/processors.h"

namespace volta::test {
namespace {

// The status a child ends with, or -1 when it was killed or took too long.
int in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    bool fine = false;
    try {
      fine = work();
    } catch (...) {}
    _exit(fine ? 0 : 1);
  }
  for (int i = 0; i < 6000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

// What a worker of a data loader does: random numbers, augmentation, products, a gradient.
Tensor some_work() {
  manual_seed(3);
  const Tensor x = randn({96, 128}), w = randn({128, 96}).requires_grad_();
  const Tensor y = softmax(matmul(x, w), -1);
  return cat({y.detach().flatten(), grad(y.square().sum(), w).flatten(), rand({1 << 16})});
}

class ThreadsFork : public testing::Test {
 protected:
  void SetUp() override {
    before_ = get_num_threads();
    set_num_threads(4);
  }
  void TearDown() override { set_num_threads(before_); }
  int before_ = 1;
};

TEST_F(ThreadsFork, ChildrenGetAPoolOfTheirOwn) {
  const Tensor wanted = some_work();
  for (const int threads : {1, 2, 4, 8})
    EXPECT_EQ(in_child([&] {
                set_num_threads(threads);
                return get_num_threads() == threads && equal(some_work(), wanted);
              }),
              0)
        << threads;
  EXPECT_EQ(in_child([&] { return equal(some_work(), wanted); }), 0);
  EXPECT_TRUE(equal(some_work(), wanted));  // and the parent keeps its own
}

TEST_F(ThreadsFork, ChildrenOfChildren) {
  const Tensor wanted = some_work();
  EXPECT_EQ(in_child([&] {
              return equal(some_work(), wanted) && in_child([&] {
                                                     set_num_threads(2);
                                                     return equal(some_work(), wanted);
                                                   }) == 0;
            }),
            0);
}

// Threads of the parent allocate, draw and compute all the while: a child must not find their locks held.
TEST_F(ThreadsFork, WhileOtherThreadsWork) {
  const Tensor wanted = some_work();
  std::atomic<bool> ends{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&, i] {
      Generator own{uint64_t(i)};
      while (!ends) {
        Tensor sum = zeros({});
        for (int64_t n = 1; n < 200; ++n) sum = sum + randn({n * 7}).sum() + Tensor(empty({n * n})).zero_().sum();
        own.take(1);
        matmul(randn({64, 64}), randn({64, 64}));
      }
    });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(in_child([&] {
                set_num_threads(1 + i % 3);
                return equal(some_work(), wanted) && memory::stats().in_use > 0;
              }),
              0)
        << i;
  ends = true;
  for (std::thread& t : others) t.join();
}

std::mutex first, second;
[[maybe_unused]] const bool forks_wait = fork_waits_for(first) && fork_waits_for(second);

// A fork waits for every lock, the last as the first.
TEST_F(ThreadsFork, WaitsUntilNoLockIsHeld) {
  for (std::mutex* lock : {&first, &second}) {
    std::atomic<bool> held{false}, done{false};
    std::thread other([&] {
      const std::lock_guard guard(*lock);
      held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      done = true;
    });
    while (!held) std::this_thread::yield();
    EXPECT_EQ(in_child([&] { return done.load() && first.try_lock() && second.try_lock(); }), 0);
    other.join();
    EXPECT_TRUE(first.try_lock() && second.try_lock());
    first.unlock(), second.unlock();
  }
}

// Memory is counted as before, and released.
TEST_F(ThreadsFork, MemoryIsCounted) {
  const Tensor kept = zeros({1 << 20});
  std::thread([] { zeros({1 << 10}); }).join();
  const int64_t before = memory::stats().in_use;
  EXPECT_EQ(in_child([&] {
              if (memory::stats().in_use != before) return false;
              { const Tensor more = zeros({1 << 20}); }
              std::thread([] { zeros({1 << 10}); }).join();
              memory::empty_cache();
              return memory::stats().in_use == before;
            }),
            0);
}

// A folder with files of cgroups.
class ThreadsCgroups : public testing::Test {
 protected:
  ThreadsCgroups() : root_(testing::TempDir() + "volta_cgroups_" + std::to_string(getpid())) {}
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& folder, const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(root_ / folder);
    std::ofstream(root_ / folder / name) << text << "\n";
  }
  const std::filesystem::path root_;
};

TEST_F(ThreadsCgroups, LimitsAreThoseOfAllCgroupsAbove) {
  EXPECT_EQ(within_cgroups(8, "0::/a/b", root_), 8);
  write("a/b", "cpu.max", "max 100000");
  EXPECT_EQ(within_cgroups(8, "0::/a/b", root_), 8);
  write("a", "cpu.max", "300000 100000");
  EXPECT_EQ(within_cgroups(8, "0::/a/b", root_), 3);
  EXPECT_EQ(within_cgroups(8, "0::/a", root_), 3);
  EXPECT_EQ(within_cgroups(8, "0::/c", root_), 8);
  EXPECT_EQ(within_cgroups(2, "0::/a/b", root_), 2);
  write("a/b", "cpu.max", "200000 100000");
  EXPECT_EQ(within_cgroups(8, "0::/a/b", root_), 2);
  EXPECT_EQ(within_cgroups(8, "0::/a/b/../..", root_), 2);
  EXPECT_EQ(within_cgroups(8, "0::/../a", root_), 8);
}

TEST_F(ThreadsCgroups, AContainerSeesItsOwnAsTheRoot) {
  write("", "cpu.max", "150000 100000");
  for (const char* membership : {"0::/", "0::/docker/0123", "", "no colon", "1:"})
    EXPECT_EQ(within_cgroups(8, membership, root_), 2) << membership;
}

TEST_F(ThreadsCgroups, OfVersion1) {
  write("cpu,cpuacct/a", "cpu.cfs_quota_us", "400000");
  write("cpu,cpuacct/a", "cpu.cfs_period_us", "100000");
  write("memory/a", "cpu.cfs_quota_us", "100000");
  write("memory/a", "cpu.cfs_period_us", "100000");
  const std::string membership = "5:memory:/a\n4:cpu,cpuacct:/a/b\n0::/x\n";
  EXPECT_EQ(within_cgroups(8, membership, root_), 4);
  write("cpu,cpuacct/a/b", "cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/a/b", "cpu.cfs_period_us", "100000");
  EXPECT_EQ(within_cgroups(8, membership, root_), 4);
  write("unified/x", "cpu.max", "300000 100000");
  EXPECT_EQ(within_cgroups(8, membership, root_), 3);
  write("cpuset/a", "cpu.cfs_quota_us", "100000");
  write("cpuset/a", "cpu.cfs_period_us", "100000");
  EXPECT_EQ(within_cgroups(8, "3:cpuset:/a", root_), 8);
}

TEST(ThreadsQuota, IsThatOfTheCgroup) {
  EXPECT_EQ(within_quota(8, "max 100000"), 8);
  EXPECT_EQ(within_quota(8, ""), 8);
  EXPECT_EQ(within_quota(8, "200000 100000"), 2);
  EXPECT_EQ(within_quota(8, "250000 100000"), 3);
  EXPECT_EQ(within_quota(8, "240000 100000"), 2);
  EXPECT_EQ(within_quota(8, "50000 100000"), 1);
  EXPECT_EQ(within_quota(8, "1000 100000"), 1);
  EXPECT_EQ(within_quota(4, "1600000 100000"), 4);
  EXPECT_EQ(within_quota(4, "400000 50000"), 4);
  EXPECT_EQ(within_quota(8, "200000"), 8);
  EXPECT_EQ(within_quota(8, "0 100000"), 8);
  EXPECT_EQ(within_quota(8, "-1 100000"), 8);
  EXPECT_EQ(within_quota(8, "100000 0"), 8);
  EXPECT_EQ(within_quota(8, "100000 -1"), 8);
  EXPECT_EQ(within_quota(8, "1e300 1"), 8);
  EXPECT_EQ(within_quota(0, "max 100000"), 1);
}

}  // namespace
}  // namespace volta::test
