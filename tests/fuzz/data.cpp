// The readers of data files led by libFuzzer: the first byte chooses the reader, the others are the file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <volta/data.h>
#include <volta/device.h>
#ifdef VOLTA_FUZZ_IMAGES
#include <volta/data/image.h>
#endif

namespace {

using namespace volta;

// Half of the bytes for each of two files, which a zero byte divides.
void tokenizer(std::string_view bytes) {
  const size_t middle = std::min(bytes.find('\0'), bytes.size());
  const auto merges = bytes.substr(std::min(middle + 1, bytes.size()));
  const auto t = data::Gpt2Tokenizer::from_text(bytes.substr(0, middle), merges);
  (void)t.decode(t.encode(merges));
}

void read(uint8_t which, std::string_view bytes) {
  switch (which % 8) {
    case 0: (void)data::parse_idx(bytes); break;
    case 1: (void)data::parse_csv(bytes); break;
    case 2: (void)data::parse_csv(bytes, {.delimiter = '\t', .header = false}); break;
    case 3: (void)data::parse_wav(bytes); break;
    case 4: tokenizer(bytes); break;
    case 5: (void)data::parse_cifar(bytes, 1 + which / 8 % 2, 0, 10); break;
    case 6: (void)data::CharTokenizer(bytes).encode(bytes); break;
    default:
#ifdef VOLTA_FUZZ_IMAGES
      (void)data::decode_image(bytes, {.min_side = which / 8, .max_pixels = 1 << 20});
#endif
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const bool limited = (memory::set_limit(int64_t(256) << 20), true);
  (void)limited;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {  // as it should be; anything else ends the run
  }
  return 0;
}
