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

std::string cure_of(const cuda::Component& c) {
  if (!c.found.empty()) return "";
  const std::string why = c.missing + "; ";
  if (c.name == "driver") return why + "install NVIDIA's driver";
  if (c.name == "GPU") return why + "is CUDA_VISIBLE_DEVICES empty?";
  if (c.name == "cuBLASLt") return why + "without it a GPU multiplies no matrices: install libcublas";
  return why + "without it convolutions are matrix products, and long attention has our own kernels: install libcudnn";
}

// What a GPU needs, each by itself.
std::vector<Finding> cuda_findings() {
  const std::vector<cuda::Component> components = cuda::components();
  if (components.empty())
    return {{"cuda", "not built",
             "for a GPU: build with -D VOLTA_CUDA=ON on a machine with the CUDA toolkit and a driver"}};
  std::vector<Finding> list = {{"cuda", cuda::is_available() ? "usable" : "not usable", ""}};
  for (const cuda::Component& c : components)
    list.push_back({c.name, c.found.empty() ? "missing" : c.found, cure_of(c)});
  return list;
}

std::vector<Finding> findings() {
  std::vector<Finding> list = {
      {"volta", VOLTA_VERSION, ""},
      {"processor", processor(), ""},
      {"threads", std::to_string(get_num_threads()) + " of " + std::to_string(std::thread::hardware_concurrency()), ""},
      {"memory limit", bytes_text(double(memory::stats().limit)), ""},
  };
  for (Finding& f : cuda_findings()) list.push_back(std::move(f));
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
