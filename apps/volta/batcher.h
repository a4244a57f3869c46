// Requests of many threads gathered into batches for one shared model.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <volta/volta.h>

namespace volta::app {

struct BatchLimits {
  int64_t max_batch = 32, max_queue = 1024;
  std::chrono::microseconds max_wait{0};  // how long a batch that is not full waits for more
  int workers = 1;
};

class Batcher {
 public:
  struct Full : std::exception {
    const char* what() const noexcept override { return "the queue is full"; }
  };
  struct Stopped : std::exception {
    const char* what() const noexcept override { return "the server is shutting down"; }
  };

  // `run` maps [n, …] to [n, …]; it and `on_batch`, which hears of every batch's size, are called from several threads.
  Batcher(
      std::function<Tensor(const Tensor&)> run, const BatchLimits& limits,
      std::function<void(int64_t)> on_batch = [](int64_t) {});
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Waits for the items' rows of the result; throws Full, Stopped, or what `run` threw.
  std::vector<Tensor> operator()(const std::vector<Tensor>& items);
  void stop();  // what is queued is finished, more is not taken
  int64_t queued() const;

 private:
  struct Request {
    Tensor input, output;
    std::exception_ptr error;
    bool done = false;
  };
  void work();
  std::vector<Request*> take(std::unique_lock<std::mutex>& lock);
  void answer(const std::vector<Request*>& batch) const;

  std::function<Tensor(const Tensor&)> run_;
  std::function<void(int64_t)> on_batch_;
  BatchLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_, answered_;
  std::deque<Request*> queue_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace volta::app
