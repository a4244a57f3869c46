// What the two benchmark programs share: the shape of a case, the timing loop, and the command line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Work of one call in billions, and the unit of that work per second.
struct Rate {
  double amount = 0;
  const char* unit = "";
};

inline Rate bytes(double count) { return {count * 1e-9, "GB/s"}; }
inline Rate flops(double count) { return {count * 1e-9, "GFLOP/s"}; }

using Call = std::function<void()>;

// `prepare` makes the inputs and returns the call to be timed, which owns them.
struct Case {
  std::string name;
  std::function<Call()> prepare;
  Rate rate = {};
};

struct Timing {
  double best;
  double median;
};

struct MatmulSize {
  std::int64_t m, n, k;
};

inline constexpr std::int64_t pointwise_sizes[] = {1 << 12, 1 << 16, 1 << 24};
inline constexpr MatmulSize matmul_sizes[] = {{32, 32, 32},    {64, 64, 64},    {64, 128, 784},     {128, 128, 128},
                                              {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
                                              {64, 2048, 512}, {1, 4096, 4096}, {3136, 64, 576}};

struct ConvSize {
  const char* name;
  std::int64_t batch, channels, side, kernel, outputs, stride = 1, groups = 1;
  double flops() const {
    const std::int64_t out = (side + 2 * (kernel / 2) - kernel) / stride + 1;
    return 2.0 * static_cast<double>(batch * outputs * out * out * (channels / groups) * kernel * kernel);
  }
};
inline constexpr ConvSize conv_sizes[] = {
    {"lenet1_b64c1h28k5o6", 64, 1, 28, 5, 6}, {"lenet1_b1c1h28k5o6", 1, 1, 28, 5, 6},
    {"b32c64h128k3o64", 32, 64, 128, 3, 64},  {"b8c64h56k3o64", 8, 64, 56, 3, 64},
    {"b8c256h14k3o256", 8, 256, 14, 3, 256},  {"b8c256h56k1o64", 8, 256, 56, 1, 64},
    {"b8c3h224k7s2o64", 8, 3, 224, 7, 64, 2}, {"depthwise_b8c96h56k3", 8, 96, 56, 3, 96, 1, 96}};

inline double seconds_of(const Call& call, std::int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < count; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Samples are kept near a millisecond, so that on a busy machine some of them run undisturbed.
inline Timing measure(const Case& chosen, double seconds) {
  const Call call = chosen.prepare();
  seconds_of(call, 3);
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(1e-3 / std::max(seconds_of(call, 1), 1e-8)));
  std::vector<double> samples;
  for (double spent = 0; spent < seconds || samples.size() < 5;) {
    const double sample = seconds_of(call, count);
    spent += sample;
    samples.push_back(sample / static_cast<double>(count));
  }
  std::sort(samples.begin(), samples.end());
  return {samples.front(), samples[samples.size() / 2]};
}

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text.substr(0, text.find('\n'))) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

inline std::string answer(const std::vector<Case>& cases, const std::string& name, double seconds) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.name == name; });
  if (found == cases.end()) return "{\"error\": " + quoted("no case " + name) + "}";
  std::ostringstream out;
  out.precision(9);
  try {
    const Timing timing = measure(*found, seconds);
    out << "{\"best\": " << timing.best << ", \"median\": " << timing.median << "}";
  } catch (const std::exception& error) {
    return "{\"error\": " + quoted(error.what()) + "}";
  }
  return out.str();
}

// Says what it can run, then answers each line `run <case> <seconds>` with one line of JSON until the input ends.
inline void serve(const std::string& program, const std::vector<Case>& cases) {
  std::cout << "{\"program\": " << quoted(program) << ", \"cases\": [";
  for (std::size_t i = 0; i < cases.size(); ++i) std::cout << (i ? ", " : "") << quoted(cases[i].name);
  std::cout << "]}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, name;
    double seconds = 0;
    const bool valid = words >> verb >> name >> seconds && verb == "run";
    std::cout << (valid ? answer(cases, name, seconds) : "{\"error\": " + quoted("not understood: " + line) + "}")
              << std::endl;
  }
}

inline void print_table(const std::vector<Case>& cases, const std::string& only, double seconds) {
  for (const Case& chosen : cases) {
    if (chosen.name.find(only) == std::string::npos) continue;
    try {
      const Timing timing = measure(chosen, seconds);
      std::printf("%-28s %12.2f us  %12.2f us", chosen.name.c_str(), timing.best * 1e6, timing.median * 1e6);
      if (chosen.rate.amount > 0) std::printf("  %9.2f %s", chosen.rate.amount / timing.best, chosen.rate.unit);
    } catch (const std::exception& error) {
      std::printf("%-28s %s", chosen.name.c_str(), quoted(error.what()).c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

struct Options {
  bool serve = false;
  int threads = 1;
  std::string only;
  double seconds = 0.6;
};

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "serve") {
      options.serve = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument("unknown or incomplete argument " + word);
    const std::string value = argv[++i];
    if (word == "--threads") {
      options.threads = std::stoi(value);
    } else if (word == "--only") {
      options.only = value;
    } else if (word == "--seconds") {
      options.seconds = std::stod(value);
    } else {
      throw std::invalid_argument("unknown argument " + word);
    }
  }
  if (options.threads < 1) throw std::invalid_argument("--threads must be at least 1");
  return options;
}

// The whole of `main`: [serve] [--threads N] [--only WORD] [--seconds S].
inline int run(int argc, char** argv, const std::string& program, const std::function<void(int)>& set_threads,
               const std::function<std::vector<Case>()>& make_cases) {
  std::optional<Options> options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\nusage: [serve] [--threads N] [--only WORD] [--seconds S]\n";
    return 2;
  }
  set_threads(options->threads);
  if (options->serve) {
    serve(program, make_cases());
  } else {
    print_table(make_cases(), options->only, options->seconds);
  }
  return 0;
}

}  // namespace bench
