// libFuzzer's entry to the reader VOLTA_FUZZ_READER.
#include <volta/device.h>
#include <volta/error.h>

#include "readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static void (*const read)(const std::string&) = [] {
    volta::memory::set_limit(int64_t(256) << 20);
    for (const volta::fuzz::Reader& r : volta::fuzz::readers())
      if (r.name == VOLTA_FUZZ_READER) return r.read;
    return static_cast<void (*)(const std::string&)>(nullptr);
  }();
  try {
    read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const volta::Error&) {  // as it should be; anything else ends the run
    return 0;
  }
  return 0;
}
