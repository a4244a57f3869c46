// The fork-join pool: every part once, nested and concurrent callers, exceptions, resizing, and the number of threads.
#include "core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/region_watch.h"
#include "volta/error.h"

namespace volta {
namespace {

class Parallel : public ::testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = get_num_threads();
};

// Runs one region and tells whether every part ran exactly once; plain ints, so that a race would be one for TSan too.
bool each_part_once(int64_t parts) {
  std::vector<int> runs(size_t(parts), 0);
  parallel(parts, [&](int64_t i) { ++runs[size_t(i)]; });
  for (int n : runs) {
    if (n != 1) return false;
  }
  return true;
}

TEST_F(Parallel, RunsEachPartOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 7, 16, 64}) {
    set_num_threads(threads);
    for (int64_t parts : {0, 1, 2, 3, 5, 64, 1000}) {
      for (int round = 0; round < 20; ++round) ASSERT_TRUE(each_part_once(parts)) << threads << " threads, " << parts;
    }
    ASSERT_TRUE(each_part_once((1 << 20) + 3)) << threads << " threads";
  }
}

TEST_F(Parallel, NoPartsMeansNoCalls) {
  parallel(0, [](int64_t) { FAIL(); });
  parallel(-3, [](int64_t) { FAIL(); });
}

TEST_F(Parallel, UsesSeveralThreads) {
  set_num_threads(4);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  parallel(4, [&](int64_t) {
    {
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    arrived.fetch_add(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived.load() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_EQ(ids.size(), 4u);
}

TEST_F(Parallel, ManySmallRegions) {
  set_num_threads(4);
  int64_t total = 0;
  for (int round = 0; round < 20000; ++round) {
    int64_t values[3] = {};
    parallel(3, [&](int64_t i) { values[i] = round + i; });
    total += values[0] + values[1] + values[2];
  }
  EXPECT_EQ(total, 3ll * 19999 * 20000 / 2 + 3 * 20000);
}

TEST_F(Parallel, WakesSleepingWorkersAndSleepingOwner) {
  set_num_threads(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(each_part_once(3));
    parallel(2, [&](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(5 * round)); });
  }
}

// Each thread has a stretch of its own, and who is done with it helps others.
TEST_F(Parallel, PartsOfAThreadThatIsHeldUpAreDoneByOthers) {
  for (int threads : {2, 3, 8}) {
    set_num_threads(threads);
    for (int64_t held : {0, 30, 63}) {
      std::atomic<int> done{0};
      parallel(64, [&](int64_t i) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (i == held && done.load() < 63 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        ++done;
      });
      EXPECT_EQ(done.load(), 64);
    }
  }
}

TEST_F(Parallel, AFewPartsKeepToAFewThreads) {
  set_num_threads(8);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  for (int round = 0; round < 200; ++round)
    parallel(2, [&](int64_t) {
      {
        std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
      while (std::chrono::steady_clock::now() < end) {}  // so that others would have the time to come
    });
  EXPECT_LE(ids.size(), 2u);
}

TEST_F(Parallel, WorkersSleepWhenToldTo) {
  struct Restore {
    const int before = get_spin_time();
    ~Restore() { set_spin_time(before); }
  } restore;
  set_num_threads(2);
  for (int microseconds : {0, 1, 5000, max_spin_time}) {
    set_spin_time(microseconds);
    EXPECT_EQ(get_spin_time(), microseconds);
    for (int round = 0; round < 20; ++round) ASSERT_TRUE(each_part_once(1 + round)) << microseconds;
  }
  for (int bad : {-1, max_spin_time + 1}) {
    try {
      set_spin_time(bad);
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::argument);
      EXPECT_EQ(e.op(), "set_spin_time");
    }
  }
  set_spin_time(0);
  ASSERT_TRUE(each_part_once(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(double(std::clock() - before) / CLOCKS_PER_SEC, 0.1);  // of the whole process
}

WatchedRegion watched = {};
std::vector<WorkerStint> stints;
TEST_F(Parallel, AWatchIsToldWhatThreadsDid) {
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    int64_t told = 0, parts = 0;
    for (int round = 0; round < 200; ++round) {
      watched = {};
      region_watch = [](const WatchedRegion& r) { watched = r, stints.assign(r.workers.begin(), r.workers.end()); };
      parallel(9, [](int64_t) { parallel(3, [](int64_t) {}); });  // loops inside are not told
      region_watch = nullptr;
      told += watched.parts == 9 && watched.threads == threads;
      EXPECT_EQ(stints.size(), size_t(threads - 1));
      EXPECT_LE(watched.start, watched.owner_done);
      EXPECT_LE(watched.owner_done, watched.end);
      for (const WorkerStint& w : stints) {
        parts += w.parts;
        EXPECT_TRUE(w.parts == 0 || (watched.start <= w.joined && w.joined <= w.done && w.done <= watched.end));
      }
    }
    EXPECT_EQ(told, 200);
    EXPECT_TRUE(threads == 1 ? parts == 0 : parts < 200 * 9) << parts;
  }
}

// A worker counts no part that it did not do: here the owner waits in the first until the workers have done the others.
TEST_F(Parallel, AWatchCountsThePartsOfWorkers) {
  set_num_threads(3);
  region_watch = [](const WatchedRegion& region) { stints.assign(region.workers.begin(), region.workers.end()); };
  std::atomic<int> others = 0;
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<int> by_owner = 0;
  parallel(40, [&](int64_t) {
    if (std::this_thread::get_id() == owner) {
      ++by_owner;
      while (others == 0) std::this_thread::yield();
    } else {
      ++others;
    }
  });
  region_watch = nullptr;
  int64_t by_workers = 0;
  for (const WorkerStint& stint : stints) by_workers += stint.parts;
  EXPECT_EQ(by_workers, others);
  EXPECT_EQ(by_workers + by_owner, 40);
}

TEST_F(Parallel, NestedCallsRunInPlace) {
  set_num_threads(4);
  std::atomic<int> elsewhere{0}, runs{0};
  parallel(8, [&](int64_t) {
    const auto here = std::this_thread::get_id();
    parallel(5, [&](int64_t) {
      ++runs;
      if (std::this_thread::get_id() != here) ++elsewhere;
      parallel(2, [&](int64_t) { ++runs; });
    });
  });
  EXPECT_EQ(runs.load(), 8 * 5 * 3);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST_F(Parallel, ConcurrentCallersShareTheThreads) {
  set_num_threads(3);
  std::atomic<int> running{0}, most{0}, wrong{0};
  constexpr int callers = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int> runs(17, 0);
        parallel(17, [&](int64_t i) {
          const int now = ++running;
          for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {}
          ++runs[size_t(i)];
          --running;
        });
        for (int n : runs) wrong += n != 1;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(most.load(), callers + 2);  // the callers themselves and the two workers of whoever owns them
}

TEST_F(Parallel, RethrowsTheFirstExceptionAndGoesOn) {
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      try {
        parallel(9, [&](int64_t i) {
          if (i % 3 == 1) throw std::runtime_error("part " + std::to_string(i));
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& e) {
        const std::string text = e.what();
        EXPECT_TRUE(text == "part 1" || text == "part 4" || text == "part 7") << text;
      }
      ASSERT_TRUE(each_part_once(9));
    }
  }
}

TEST_F(Parallel, ExceptionInNestedCallReachesTheOuterCaller) {
  set_num_threads(3);
  const auto run = [] {
    parallel(4, [](int64_t i) {
      parallel(4, [i](int64_t j) {
        if (i == 2 && j == 3) throw Error(Error::Kind::internal, "test", "inner");
      });
    });
  };
  EXPECT_THROW(run(), Error);
}

TEST_F(Parallel, ResizesWhileInUse) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int t = 0; t < 2; ++t) {
    users.emplace_back([&] {
      while (!stop.load()) wrong += !each_part_once(11);
    });
  }
  for (int round = 0; round < 60; ++round) set_num_threads(1 + round % 6);
  parallel(3, [&](int64_t i) { set_num_threads(int(i) + 1); });  // from inside a region too
  stop = true;
  for (auto& t : users) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(Parallel, CountIsCheckedAndKept) {
  for (int bad : {0, -1, max_threads + 1}) {
    try {
      set_num_threads(bad);
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::argument);
      EXPECT_EQ(e.op(), "set_num_threads");
    }
    EXPECT_EQ(get_num_threads(), before_);
  }
  set_num_threads(5);
  EXPECT_EQ(get_num_threads(), 5);
}

TEST_F(Parallel, BodyMayBeConstOrMovedIn) {
  std::atomic<int> sum{0};
  const auto body = [&](int64_t i) { sum += int(i); };
  parallel(10, body);
  parallel(10, std::function<void(int64_t)>(body));
  EXPECT_EQ(sum.load(), 90);
}

// Its destructor runs after main; the pool must still be there.
struct LateUser {
  ~LateUser() {
    if (used && !each_part_once(16)) std::abort();
  }
  bool used = false;
} late_user;

TEST_F(Parallel, WorksDuringStaticDestruction) {
  late_user.used = true;
  EXPECT_TRUE(each_part_once(16));
}

}  // namespace
}  // namespace volta
