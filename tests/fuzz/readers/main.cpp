// volta_fuzz_readers: damaged files for one reader, kept and damaged again when they reach code that none reached before.
// usage: volta_fuzz_readers --list
//        volta_fuzz_readers --reader NAME [--calls N] [--seconds S] [--seed K]    damages files
//        volta_fuzz_readers --reader NAME --file PATH                             reads one: repeats a finding
// A finding ends the program; the file that led to it stays in finding-NAME of the current folder.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <volta/device.h>
#include <volta/error.h>

#include "readers.h"

namespace {

// How often each edge between blocks of code was taken in this call; calls share a counter when their hashes meet.
constexpr size_t edges = 1 << 14;
std::array<uint8_t, edges> taken;
uintptr_t last_block = 0;

}  // namespace

#if defined(__clang__)
#define VOLTA_NOT_TRACED __attribute__((no_sanitize("address", "undefined", "coverage")))
#else
#define VOLTA_NOT_TRACED __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage))
#endif
// The compiler calls it in every block of the library when VOLTA_FUZZ_COVERAGE is on.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" VOLTA_NOT_TRACED void __sanitizer_cov_trace_pc() {
  const auto block = uintptr_t(__builtin_return_address(0));
  const size_t hash = ((block >> 2) * 0x9E3779B97F4A7C15u) >> 50;
  uint8_t& count = taken[(hash ^ last_block) % edges];
  count = uint8_t(count + (count != 255));
  last_block = hash >> 1;
}
// A reader that asks for gigabytes at once is a finding, whatever the machine has.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=2048"; }

namespace volta::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned seconds_per_call = 20;

struct Settings {
  std::string reader, file;
  uint64_t seed = 1;
  int64_t calls = 1'000'000;
  double seconds = 1e9;
};

// The input at hand lies in a mapped file, which outlives a crash.
class Evidence {
 public:
  explicit Evidence(std::string path) : path_(std::move(path)) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, off_t(room)) != 0) {
      std::perror(path_.c_str());
      std::exit(2);
    }
    bytes_ = static_cast<char*>(mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  ~Evidence() {
    munmap(bytes_, room);
    unlink(path_.c_str());
  }
  Evidence(const Evidence&) = delete;
  Evidence& operator=(const Evidence&) = delete;
  // Its size, then the bytes.
  void keep(const std::string& input) {
    const uint64_t size = input.size();
    std::memcpy(bytes_, &size, sizeof size);
    std::memcpy(bytes_ + sizeof size, input.data(), input.size());
  }
  static std::string load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    uint64_t size = 0;
    in.read(reinterpret_cast<char*>(&size), sizeof size);
    std::string input(std::min<uint64_t>(size, room), '\0');
    in.read(input.data(), std::streamsize(input.size()));
    return input;
  }
  static constexpr size_t longest = (size_t(1) << 20) - 8;

 private:
  static constexpr size_t room = longest + 8;
  std::string path_;
  char* bytes_;
};

// Which counts of which edges any call has had, by powers of two.
class Seen {
 public:
  // Whether this call did what no call before did; the counts begin anew. It is run after every call, and costs more than many
  // of them if it is watched.
  VOLTA_NOT_TRACED bool add_call() {
    bool news = false;
    uint8_t *counts = taken.data(), *seen = seen_.data();
    for (size_t i = 0; i < edges; i += 8) {
      uint64_t eight;
      __builtin_memcpy(&eight, counts + i, 8);
      if (eight == 0) continue;
      for (size_t k = i; k < i + 8; ++k) {
        if (counts[k] == 0) continue;
        const auto bit = uint8_t(1 << (31 - __builtin_clz(counts[k])));
        news |= (seen[k] & bit) == 0;
        seen[k] |= bit;
        counts[k] = 0;
      }
    }
    last_block = 0;
    return news;
  }
  size_t count() const {
    return size_t(std::count_if(seen_.begin(), seen_.end(), [](uint8_t s) { return s != 0; }));
  }

 private:
  std::array<uint8_t, edges> seen_{};
};

bool reads_well(const Reader& reader, const std::string& input) {
  try {
    reader.read(input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void run(const Reader& reader, const Settings& settings) {
  std::mt19937_64 random(settings.seed);
  std::vector<std::string> corpus = reader.seeds();
  size_t longest = 4096;
  for (const std::string& seed : corpus) longest = std::max(longest, std::min(2 * seed.size(), Evidence::longest));
  Seen seen;
  Evidence evidence("finding-" + reader.name);
  for (const std::string& seed : corpus) {
    if (!reads_well(reader, seed)) {
      std::fprintf(stderr, "%s: a seed is not read\n", reader.name.c_str());
      std::exit(2);
    }
    seen.add_call();
  }
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  int64_t calls = 0, well = 0;
  for (; calls < settings.calls && (calls % 64 != 0 || elapsed() < settings.seconds); ++calls) {
    const std::string& one = corpus[random() % corpus.size()];
    std::string input = mutated(one, corpus[random() % corpus.size()], random);
    if (input.size() > longest) input.resize(longest);
    evidence.keep(input);
    alarm(seconds_per_call);
    well += reads_well(reader, input);
    if (seen.add_call()) corpus.push_back(std::move(input));
  }
  alarm(0);
  std::printf("%-18s %10lld calls in %.0f s, %.1f%% read well, %zu files kept, %zu edges, no finding\n",
              reader.name.c_str(), static_cast<long long>(calls), elapsed(),
              100.0 * double(well) / double(std::max<int64_t>(calls, 1)), corpus.size(), seen.count());
}

extern "C" void too_slow(int) {
  constexpr char text[] = "volta_fuzz_readers: a call takes longer than 20 s\n";
  (void)!write(2, text, sizeof text - 1);
  std::abort();
}

int main_of(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--list") {
      for (const Reader& r : readers()) std::puts(r.name.c_str());
      return 0;
    }
    const std::string value = i + 1 < count ? arguments[++i] : "";
    if (name == "--reader") settings.reader = value;
    else if (name == "--file") settings.file = value;
    else if (name == "--seed") settings.seed = std::stoull(value);
    else if (name == "--calls") settings.calls = std::stoll(value);
    else if (name == "--seconds") settings.seconds = std::stod(value);
    else {
      std::fprintf(stderr, "volta_fuzz_readers: what is %s?\n", name.c_str());
      return 2;
    }
  }
  memory::set_limit(int64_t(256) << 20);
  (void)std::signal(SIGALRM, too_slow);
  for (const Reader& r : readers()) {
    if (r.name != settings.reader) continue;
    if (settings.file.empty()) run(r, settings);
    else std::puts(reads_well(r, Evidence::load(settings.file)) ? "read" : "refused");
    return 0;
  }
  std::fprintf(stderr, "volta_fuzz_readers: no reader '%s'; --list names them\n", settings.reader.c_str());
  return 2;
}

}  // namespace
}  // namespace volta::fuzz

int main(int count, char** arguments) { return volta::fuzz::main_of(count, arguments); }
