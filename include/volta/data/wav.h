// Sound: WAV files in and out.
#pragma once
#include <string>
#include <string_view>

#include <volta/tensor.h>

namespace volta::data {

struct Audio {
  Tensor samples;  // f32 [channels, frames], from -1 to 1
  int64_t sample_rate = 0;
};
// PCM of 8, 16, 24 and 32 bits, and floats of 32 and 64: auto [samples, rate] = read_wav("a.wav").
[[nodiscard]] Audio read_wav(const std::string& path);
[[nodiscard]] Audio parse_wav(std::string_view bytes, const std::string& name = "the data");

struct WavOptions {
  int bits_per_sample = 16;  // 8, 16, 24, 32; floats: 32
  bool floating = false;
};
// samples are floating, [channels, frames] or [frames]; what is beyond -1 and 1 is cut, unless written as floats.
void write_wav(const std::string& path, const Tensor& samples, Int sample_rate, const WavOptions& options = {});

}  // namespace volta::data
