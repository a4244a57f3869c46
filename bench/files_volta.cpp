// Writing a safetensors file against copying it with cp and sync, in turns on one disk: seconds of each and the ratio.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <volta/volta.h>

using namespace volta;

namespace {

template <class F> double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const std::filesystem::path& folder, double gib, int rounds) {
  const std::filesystem::path file = folder / "ours.safetensors", copy = folder / "copy.safetensors";
  const StateDict state{{"x", rand({int64_t(gib * double(1 << 28))})}};
  const std::string command = "cp '" + file.string() + "' '" + copy.string() + "' && sync '" + copy.string() + "'";
  std::vector<double> ours, theirs;
  for (int i = 0; i < rounds; ++i) {
    std::filesystem::remove(file);
    ours.push_back(seconds_of([&] { write_safetensors(file.string(), state); }));
    // What cp is to copy is read once before, so that neither side waits for the disk to read.
    if (std::system(("cat '" + file.string() + "' > /dev/null").c_str()) != 0) throw std::runtime_error("cat failed");
    std::filesystem::remove(copy);
    theirs.push_back(seconds_of([&] {
      if (std::system(command.c_str()) != 0) throw std::runtime_error("cp failed");
    }));
    std::printf("write_safetensors %.2f s, cp and sync %.2f s, ratio %.2f\n", ours.back(), theirs.back(),
                theirs.back() / ours.back());
  }
  std::printf("medians of %g GiB: %.2f s, %.2f s, ratio %.2f\n", gib, median(ours), median(theirs),
              median(theirs) / median(ours));
  std::filesystem::remove(file);
  std::filesystem::remove(copy);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 4) {
    std::fprintf(stderr, "usage: files_volta FOLDER [GIB = 2] [ROUNDS = 5]\n");
    return 2;
  }
  try {
    compare(arguments[1], count > 2 ? std::atof(arguments[2]) : 2,
            count > 3 ? std::max(1, std::atoi(arguments[3])) : 5);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "files_volta: %s\n", error.what());
    return 1;
  }
}
