// libFuzzer's entry to the reader of: NumPy's arrays.
#include "fuzz/io_readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return volta::fuzz::one_input(volta::fuzz::read_npy, data, size);
}
