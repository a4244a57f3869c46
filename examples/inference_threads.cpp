// Shows one model served by several threads, with the results of one; run `inference_threads [FOLDER] [--short]`.
#include <models/lenet.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

using namespace volta;

namespace {

// The call operator of a model is const: what is const may be shared. Requests are taken by whichever thread is free.
std::vector<Tensor> served(const models::LeNet5& net, const std::vector<Tensor>& requests, int threads) {
  std::vector<Tensor> answers(requests.size());
  std::atomic<size_t> next = 0;
  const auto serve = [&] {
    const InferenceMode on;  // a mode of the thread, so each sets its own
    for (size_t i = next++; i < requests.size(); i = next++) answers[i] = softmax(net(requests[i]), -1);
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(serve);
  for (std::thread& t : pool) t.join();
  return answers;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int64_t images_each = 8, rounds = 4;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") rounds = 1;
    else folder = arguments[i];

  manual_seed(1);
  models::LeNet5 net;
  eval(net);
  const Tensor images =
      interpolate(data::digits(folder, {.train = false}).tensors()[0], {.scale_factor = 2, .mode = "bilinear"});
  std::vector<Tensor> requests;
  for (int64_t round = 0; round < rounds; ++round)
    for (const Tensor& some : images.split(images_each)) requests.push_back(some);

  // Requests in parallel leave nothing to do for threads inside an op.
  set_num_threads(1);
  const std::vector<Tensor> expected = served(net, requests, 1);
  bool same = true;
  for (const int threads : {1, 2, 4, 8}) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Tensor> answers = served(net, requests, threads);
    const double seconds = seconds_since(start);
    bool equal_here = true;
    for (size_t i = 0; i < answers.size(); ++i) equal_here = equal_here && equal(answers[i], expected[i]);
    std::printf("%d threads  %4zu requests  %7.0f images a second  equal to the bit: %s\n", threads, requests.size(),
                double(requests.size()) * double(images_each) / seconds, equal_here ? "yes" : "no");
    same = same && equal_here;
  }
  return same ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "inference_threads: %s\n", e.what()), 1;
}
