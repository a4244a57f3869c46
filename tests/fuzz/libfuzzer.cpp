// The same calls, led by libFuzzer: the first bytes choose the call, the others are what it draws.
#include <cstdio>
#include <cstdlib>

#include "source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace volta::fuzz;
  if (size < 4) return 0;
  static const bool limited = (volta::memory::set_limit(int64_t(48) << 20), true);
  (void)limited;
  Source source(std::span(data, size));
  const Call& call = all_calls()[source.bits() % all_calls().size()];
  if (const std::string wrong = run(call, source); !wrong.empty()) {
    std::fprintf(stderr, "%s: %s\n  drew %s\n", call.name.c_str(), wrong.c_str(), source.story().c_str());
    std::abort();
  }
  return 0;
}
