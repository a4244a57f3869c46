#include "server_metrics.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace volta::app {
namespace {

std::string shown(double value) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << value;
  return text.str();
}

void header(std::string& to, const std::string& name, const std::string& help, const char* type) {
  to += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

Histogram::Histogram(std::initializer_list<double> bounds) : count_(int(bounds.size())) {
  std::copy(bounds.begin(), bounds.end(), bounds_.begin());
}

void Histogram::add(double value) {
  const auto end = bounds_.begin() + count_;
  const auto bin = size_t(std::lower_bound(bounds_.begin(), end, value) - bounds_.begin());
  const std::scoped_lock lock(mutex_);
  ++seen_[bin];
  sum_ += value;
}

void Histogram::write(std::string& to, const std::string& name, const std::string& help) const {
  header(to, name, help, "histogram");
  const std::scoped_lock lock(mutex_);
  int64_t total = 0;
  for (int i = 0; i <= count_; ++i) {
    total += seen_[size_t(i)];
    to += name + "_bucket{le=\"" + (i < count_ ? shown(bounds_[size_t(i)]) : "+Inf") + "\"} " + std::to_string(total) +
          "\n";
  }
  to += name + "_sum " + shown(sum_) + "\n" + name + "_count " + std::to_string(total) + "\n";
}

void ServerMetrics::answered(int status, double seconds) {
  latency_.add(seconds);
  const std::scoped_lock lock(mutex_);
  ++by_status_[status];
}

void ServerMetrics::refused(int status) {
  const std::scoped_lock lock(mutex_);
  ++by_status_[status];
}

std::string ServerMetrics::text(int64_t queued, int64_t connections) const {
  std::string to;
  header(to, "volta_requests_total", "Answers by HTTP status.", "counter");
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [status, count] : by_status_)
      to += "volta_requests_total{code=\"" + std::to_string(status) + "\"} " + std::to_string(count) + "\n";
  }
  latency_.write(to, "volta_request_seconds", "Time from a whole request to its answer.");
  batches_.write(to, "volta_batch_size", "Requests that ran together.");
  header(to, "volta_tokens_total", "Tokens generated.", "counter");
  to += "volta_tokens_total " + std::to_string(tokens_.load()) + "\n";
  header(to, "volta_queue_length", "Requests waiting for a batch.", "gauge");
  to += "volta_queue_length " + std::to_string(queued) + "\n";
  header(to, "volta_connections", "Open connections.", "gauge");
  to += "volta_connections " + std::to_string(connections) + "\n";
  header(to, "process_resident_memory_bytes", "Resident memory.", "gauge");
  to += "process_resident_memory_bytes " + std::to_string(resident_bytes()) + "\n";
  return to;
}

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * int64_t(sysconf(_SC_PAGESIZE));
}

}  // namespace volta::app
