// What a profiler keeps of what it is told, and how it shows it.
#include <volta/train/profiler.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "backend/profile.h"
#include "core/check.h"
#include "core/profile.h"
#include "train/output_file.h"
#include "train/text.h"

namespace volta {
namespace {

constexpr std::array kind_names = {"op", "backward", "scope"};
constexpr double nanosecond = 1e-9;

std::string milliseconds(double seconds) { return short_text(seconds * 1e3); }

// Microseconds, as Chrome counts, with the nanoseconds behind the point.
std::string microseconds(int64_t nanoseconds) {
  const std::string rest = std::to_string(nanoseconds % 1000);
  return std::to_string(nanoseconds / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

// A name on one line.
std::string plain(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return uint8_t(c) < 0x20 || c == 0x7F; }, ' ');
  return valid_utf8(name);
}

double average(const ProfileRow& r) { return r.calls > 0 ? r.total / double(r.calls) : 0; }

bool before(const ProfileRow& a, const ProfileRow& b, ProfileSort by) {
  switch (by) {
    case ProfileSort::total: return a.total > b.total;
    case ProfileSort::self: return a.self > b.self;
    case ProfileSort::calls: return a.calls > b.calls;
    case ProfileSort::average: return average(a) > average(b);
    case ProfileSort::memory: return a.bytes > b.bytes;
    case ProfileSort::name: break;
  }
  return a.name < b.name;
}

}  // namespace

struct Profiler::State final : profile::Sink {
  explicit State(const ProfilerOptions& options) : Sink(options.sync), most_events(size_t(options.max_events)) {}

  struct Kept {  // an event, or where `counter` an allocation
    const std::string* name;
    profile::Kind kind;
    bool counter;
    Device device;
    uint32_t thread;
    int64_t start, duration, bytes;
    std::string json() const;
  };
  struct Memory {
    int64_t peak = 0, forward = 0, backward = 0;
    std::map<std::string, MemoryReport::Op, std::less<>> by_op;
    std::optional<int64_t> at_stop;
  };

  void ended(const profile::Event& e) override {
    if (e.start < begin) return;  // it began before this profiler
    const std::lock_guard lock(mutex);
    const std::string& name = *names.emplace(e.name).first;
    ProfileRow& row = rows[{&name, e.kind}];
    ++row.calls;
    row.total += double(e.duration) * nanosecond;
    row.self += double(e.self) * nanosecond;
    row.bytes += e.bytes;
    keep({&name, e.kind, false, e.device, e.thread, e.start - begin, e.duration, e.bytes});
  }

  void allocated(const profile::Allocation& a) override {
    if (a.time < begin) return;
    const std::lock_guard lock(mutex);
    Memory& m = memory_of(a.device);
    m.peak = std::max(m.peak, a.in_use);
    int64_t& side = a.backward ? m.backward : m.forward;
    side = std::max(side, a.in_use);
    auto found = m.by_op.find(a.op);
    if (found == m.by_op.end()) found = m.by_op.emplace(a.op, MemoryReport::Op{std::string(a.op)}).first;
    ++found->second.calls;
    found->second.bytes += a.bytes;
    keep({&found->first, profile::Kind::op, true, a.device, a.thread, a.time - begin, 0, a.in_use});
  }

  void keep(const Kept& k) {
    if (kept.size() < most_events) kept.push_back(k);
    else ++dropped;
  }
  Memory& memory_of(Device d) { return memories[{int(d.type), int(d.index)}]; }

  const size_t most_events;
  const int64_t begin = profile::now();
  mutable std::mutex mutex;
  bool running = true;
  int64_t end = 0;
  std::set<std::string, std::less<>> names;
  std::map<std::pair<const std::string*, profile::Kind>, ProfileRow> rows;
  std::vector<Kept> kept;
  int64_t dropped = 0;
  std::map<std::pair<int, int>, Memory> memories;
};

std::string Profiler::State::Kept::json() const {
  const std::string where = device.str(), amount = std::to_string(bytes),
                    place = ", \"pid\": 1, \"tid\": " + std::to_string(thread) + ", \"ts\": " + microseconds(start);
  if (counter)
    return ",\n{\"name\": " + json_string("memory of " + where) + ", \"ph\": \"C\"" + place +
           ", \"args\": {\"bytes\": " + amount + "}}";
  return ",\n{\"name\": " + json_string(*name) + ", \"cat\": \"" + kind_names[size_t(kind)] + "\", \"ph\": \"X\"" +
         place + ", \"dur\": " + microseconds(duration) + ", \"args\": {\"device\": " + json_string(where) +
         ", \"bytes\": " + amount + "}}";
}

Profiler::Profiler(const ProfilerOptions& options) {
  require(options.max_events >= 0, ErrorKind::argument, "Profiler", "max_events is negative: ", options.max_events);
  state_ = std::make_unique<State>(options);
  State::Memory& host = state_->memory_of(Device());
  host.peak = memory_in_use(Device());
  profile::add(*state_, time_backends);
}

Profiler::~Profiler() { profile::remove(*state_, time_backends); }

void Profiler::stop() {
  profile::remove(*state_, time_backends);
  const std::lock_guard lock(state_->mutex);
  if (!std::exchange(state_->running, false)) return;
  for (auto& [place, memory] : state_->memories)
    memory.at_stop = memory_in_use(Device(DeviceType(place.first), place.second));
}

std::vector<ProfileRow> Profiler::rows() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ProfileRow> list;
  for (const auto& [key, row] : state_->rows) {
    list.push_back(row);
    list.back().name = *key.first;
    list.back().kind = kind_names[size_t(key.second)];
  }
  std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return before(a, b, ProfileSort::name); });
  std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return before(a, b, ProfileSort::total); });
  return list;
}

std::string Profiler::table(const ProfileTableOptions& options) const {
  const ProfileSort by = options.sort_by.of("Profiler", "sort_by");
  require(options.top >= 0, ErrorKind::argument, "Profiler", "top is negative: ", options.top);
  std::vector<ProfileRow> list = rows();
  std::stable_sort(list.begin(), list.end(), [&](auto& a, auto& b) { return before(a, b, by); });
  double all = 0;
  for (const ProfileRow& r : list) all += r.self;
  const size_t shown = std::min(list.size(), size_t(options.top));
  std::vector<std::vector<std::string>> text = {
      {"name", "kind", "calls", "total ms", "self ms", "average ms", "share", "memory"}};
  for (const ProfileRow& r : std::span(list).first(shown)) {
    const std::string share = short_text(all > 0 ? 100 * r.self / all : 0);
    text.push_back({plain(r.name), r.kind, std::to_string(r.calls), milliseconds(r.total), milliseconds(r.self),
                    milliseconds(average(r)), share.substr(0, share.size() - 2) + "%", bytes_text(double(r.bytes))});
  }
  std::string out = table_text(text);
  if (shown < list.size()) out += "and " + std::to_string(list.size() - shown) + " more\n";
  return out + "self time in all: " + milliseconds(all) + " ms\n";
}

MemoryReport Profiler::memory(const Device& device) const {
  const std::lock_guard lock(state_->mutex);
  MemoryReport report;
  const auto found = state_->memories.find({int(device.type), int(device.index)});
  if (found == state_->memories.end()) return report;
  const State::Memory& m = found->second;
  report = {m.at_stop ? *m.at_stop : memory_in_use(device), m.peak, m.forward, m.backward};
  for (const auto& [name, op] : m.by_op) report.by_op.push_back(op);
  std::stable_sort(report.by_op.begin(), report.by_op.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  return report;
}

std::string MemoryReport::str() const {
  const auto line = [](const char* what, int64_t bytes) {
    return std::vector<std::string>{what, bytes_text(double(bytes))};
  };
  std::string out = table_text({line("current", current), line("peak", peak), line("peak in forward", peak_forward),
                                line("peak in backward", peak_backward)});
  std::vector<std::vector<std::string>> rows = {{"op", "allocations", "memory"}};
  for (const Op& op : by_op) rows.push_back({op.name, std::to_string(op.calls), bytes_text(double(op.bytes))});
  return out + table_text(rows);
}

void Profiler::write_trace(const std::string& path) const {
  OutputFile file(path, false, "write_trace");
  const std::lock_guard lock(state_->mutex);
  file.write("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
  file.write("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"volta\"}}");
  for (const State::Kept& k : state_->kept) file.write(k.json());
  file.write("\n]}\n");
  file.flush();
}

int64_t Profiler::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

ProfileScope::ProfileScope(std::string_view name)
    : open_(profile::on() && profile::begin_region(profile::Kind::scope, name, Device())) {}
ProfileScope::~ProfileScope() {
  if (open_) profile::end_region();
}

}  // namespace volta
