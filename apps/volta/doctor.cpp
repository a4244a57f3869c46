// volta doctor: what this build and this machine can do, and what is missing.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "network.h"

namespace volta::app {
namespace {

struct Finding {
  std::string what, state, cure;  // no cure: all is well
};

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
#ifdef __aarch64__
  return "ARM64";
#else
  return "x86-64";
#endif
}

std::vector<Finding> findings() {
  std::vector<Finding> list = {
      {"volta", VOLTA_VERSION, ""},
      {"processor", processor(), ""},
      {"threads", std::to_string(get_num_threads()) + " of " + std::to_string(std::thread::hardware_concurrency()), ""},
      {"memory limit", bytes_text(double(memory::stats().limit)), ""},
  };
  if (cuda::is_available()) list.push_back({"cuda", std::to_string(cuda::device_count()) + " device(s)", ""});
  else
    list.push_back(
        {"cuda", "not used", "for a GPU: build with -D VOLTA_CUDA=ON on a machine with the CUDA toolkit and a driver"});
#ifdef VOLTA_IMAGES
  list.push_back({"images", "PNG and JPEG", ""});
#else
  list.push_back({"images", "PPM, PGM and BMP only", "install libjpeg-dev and libpng-dev, then build again"});
#endif
  // A product whose result is known: the machine computes.
  const Tensor a = arange(0, 64).to(f32).reshape({8, 8});
  const bool right = matmul(a, eye(8)).sum().item<double>() == 2016;
  list.push_back(
      {"arithmetic", right ? "right" : "WRONG", right ? "" : "this build does not fit the processor: build it here"});
  return list;
}

}  // namespace

void add_doctor(Command program, Common& common) {
  Command command = program.command("doctor", "what this machine and build can do, and what is missing");
  command.on_run([&common] {
    const Terminal terminal = common.terminal();
    nlohmann::json all = nlohmann::json::object();
    for (const Finding& f : findings()) {
      if (terminal.json) all[f.what] = {{"state", f.state}, {"cure", f.cure}};
      else
        std::printf("%-13s %s%s\n", f.what.c_str(), f.state.c_str(),
                    f.cure.empty() ? "" : terminal.faint("  (" + f.cure + ")").c_str());
      if (f.state == "WRONG") common.status = Exit::failed;
    }
    if (terminal.json) std::printf("%s\n", all.dump().c_str());
  });
}

}  // namespace volta::app
