// libFuzzer's entry to the reader of: gzip files.
#include "fuzz/io_readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return volta::fuzz::one_input(volta::fuzz::read_gzip, data, size);
}
