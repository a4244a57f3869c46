#include "batcher.h"

namespace volta::app {

Batcher::Batcher(std::function<Tensor(const Tensor&)> run, const BatchLimits& limits,
                 std::function<void(int64_t)> on_batch)
    : run_(std::move(run)), on_batch_(std::move(on_batch)), limits_(limits) {
  for (int i = 0; i < limits_.workers; ++i) workers_.emplace_back([this] { work(); });
}

Batcher::~Batcher() { stop(); }

void Batcher::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& worker : workers_)
    if (worker.joinable()) worker.join();
}

int64_t Batcher::queued() const {
  const std::scoped_lock lock(mutex_);
  return int64_t(queue_.size());
}

std::vector<Tensor> Batcher::operator()(const std::vector<Tensor>& items) {
  std::vector<Request> requests(items.size());  // does not grow: the queue points into it
  for (size_t i = 0; i < items.size(); ++i) requests[i].input = items[i];
  std::unique_lock lock(mutex_);
  if (stopping_) throw Stopped();
  if (int64_t(queue_.size() + items.size()) > limits_.max_queue) throw Full();
  for (Request& request : requests) queue_.push_back(&request);
  if (items.size() > 1) arrived_.notify_all();
  else arrived_.notify_one();
  std::vector<Tensor> outputs;
  std::exception_ptr error;
  for (Request& request : requests) {
    answered_.wait(lock, [&] { return request.done; });
    if (request.error && !error) error = request.error;
    outputs.push_back(std::move(request.output));
  }
  if (error) std::rethrow_exception(error);
  return outputs;
}

// Requests of one shape and dtype, in the order they came: together, dtypes would be promoted, and bytes count as 0 … 1
// only while they are bytes. Whatever arrives while all workers run waits for the next batch, so
// batches grow with the load by themselves; max_wait only trades latency for larger ones.
std::vector<Batcher::Request*> Batcher::take(std::unique_lock<std::mutex>& lock) {
  arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  const auto full = [&] { return stopping_ || int64_t(queue_.size()) >= limits_.max_batch; };
  if (!queue_.empty() && limits_.max_wait.count() > 0) arrived_.wait_for(lock, limits_.max_wait, full);
  std::vector<Request*> batch;
  while (!queue_.empty() && int64_t(batch.size()) < limits_.max_batch) {
    const Tensor& next = queue_.front()->input;
    if (!batch.empty() && (next.shape() != batch[0]->input.shape() || next.dtype() != batch[0]->input.dtype())) break;
    batch.push_back(queue_.front());
    queue_.pop_front();
  }
  return batch;
}

void Batcher::answer(const std::vector<Request*>& batch) const {
  const auto run = [&](const std::vector<Request*>& some) {
    std::vector<Tensor> inputs;
    for (const Request* r : some) inputs.push_back(r->input);
    const Tensor outputs = run_(stack(inputs));
    for (size_t i = 0; i < some.size(); ++i) some[i]->output = outputs[int64_t(i)];
  };
  try {
    run(batch);
  } catch (...) {
    // One bad request must not fail its neighbours.
    for (Request* r : batch) try {
        run({r});
      } catch (...) {
        r->error = std::current_exception();
      }
  }
}

void Batcher::work() {
  const InferenceMode inference;
  std::unique_lock lock(mutex_);
  while (true) {
    const std::vector<Request*> batch = take(lock);
    if (batch.empty() && stopping_) return;
    if (batch.empty()) continue;
    lock.unlock();
    on_batch_(int64_t(batch.size()));
    answer(batch);
    lock.lock();
    for (Request* r : batch) r->done = true;
    answered_.notify_all();
  }
}

}  // namespace volta::app
