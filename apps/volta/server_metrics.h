// Counters of the server, and their text for Prometheus.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace volta::app {

// Counts of values at or below each bound.
class Histogram {
 public:
  static constexpr int max_bounds = 12;
  explicit Histogram(std::initializer_list<double> bounds);
  void add(double value);
  void write(std::string& to, const std::string& name, const std::string& help) const;

 private:
  std::array<double, max_bounds> bounds_{};
  int count_ = 0;
  mutable std::mutex mutex_;
  std::array<int64_t, max_bounds + 1> seen_{};
  double sum_ = 0;
};

class ServerMetrics {
 public:
  void answered(int status, double seconds);
  void refused(int status);  // before it was a whole request
  void batch(int64_t size) { batches_.add(double(size)); }
  void tokens(int64_t count) { tokens_ += count; }
  std::string text(int64_t queued, int64_t connections) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, int64_t> by_status_;
  Histogram latency_{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
  Histogram batches_{1, 2, 4, 8, 16, 32, 64, 128};
  std::atomic<int64_t> tokens_{0};
};

int64_t resident_bytes();  // of this process

}  // namespace volta::app
