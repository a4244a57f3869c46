// The reader and the writer of WAV files.
#include <volta/data/wav.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <volta/ops.h>

#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "data/file.h"

namespace volta::data {
namespace {

constexpr uint32_t pcm = 1, ieee_float = 3, extensible = 0xfffe;

struct Format {
  uint32_t code = 0, channels = 0, rate = 0, bits = 0;
  int64_t sample_bytes() const { return bits / 8; }
};

Format format_of(std::string_view chunk, const std::string& name) {
  constexpr const char* op = "read_wav";
  Bytes in(chunk, name, op);
  Format f;
  f.code = in.little_endian_16();
  f.channels = in.little_endian_16();
  f.rate = in.little_endian_32();
  (void)in.take(4);  // bytes in a second
  const uint32_t block = in.little_endian_16();
  f.bits = in.little_endian_16();
  if (f.code == extensible) {
    (void)in.take(8);  // how much follows, valid bits, places of the speakers
    f.code = in.little_endian_16();
  }
  const bool known = (f.code == pcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32)) ||
                     (f.code == ieee_float && (f.bits == 32 || f.bits == 64));
  require(known, ErrorKind::io, op, name, " has format ", f.code, " with ", f.bits,
          " bits; PCM of 8, 16, 24 and 32 bits and floats of 32 and 64 are read");
  require(f.channels > 0 && f.rate > 0, ErrorKind::io, op, name, " has ", f.channels, " channels at ", f.rate, " Hz");
  require(block == f.channels * f.bits / 8, ErrorKind::io, op, name, " says ", block, " bytes a frame; ", f.channels,
          " channels of ", f.bits, " bits are ", f.channels * f.bits / 8);
  return f;
}

float sample_at(const char* p, const Format& f) {
  const auto byte = [p](int i) { return uint32_t(uint8_t(p[i])); };
  if (f.code == ieee_float && f.bits == 64) {
    double x;
    std::memcpy(&x, p, 8);
    return float(x);
  }
  if (f.code == ieee_float) {
    float x;
    std::memcpy(&x, p, 4);
    return x;
  }
  if (f.bits == 8) return float(int(byte(0)) - 128) / 128.f;
  if (f.bits == 16) return float(int16_t(byte(0) | byte(1) << 8)) / 32768.f;
  if (f.bits == 24) return float(int32_t(byte(0) << 8 | byte(1) << 16 | byte(2) << 24) >> 8) / 8388608.f;
  return float(double(int32_t(byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24)) / 2147483648.0);
}

Tensor samples_of(std::string_view data, const Format& f, const std::string& name) {
  constexpr const char* op = "read_wav";
  const int64_t channels = f.channels, bytes = f.sample_bytes(), frame = channels * bytes;
  require(int64_t(data.size()) % frame == 0, ErrorKind::io, op, name, " has ", data.size(),
          " bytes of sound, which are not whole frames of ", frame);
  const int64_t frames = int64_t(data.size()) / frame;
  const Tensor out = allocate({channels, frames}, f32, Device(), op);
  auto* to = static_cast<float*>(address(out));
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t c = 0; c < channels; ++c) to[c * frames + t] = sample_at(data.data() + t * frame + c * bytes, f);
  return out;
}

void put(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i) & 0xff);
}

void put_sample(std::string& out, float x, const WavOptions& o) {
  if (o.floating) return put(out, std::bit_cast<uint32_t>(x), 4);
  const double scale = std::ldexp(1.0, o.bits_per_sample - 1);
  const double value = std::isnan(x) ? 0 : std::clamp(std::nearbyint(double(x) * scale), -scale, scale - 1);
  put(out, uint32_t(int32_t(value)) + (o.bits_per_sample == 8 ? 128 : 0), o.bits_per_sample / 8);
}

}  // namespace

Audio parse_wav(std::string_view bytes, const std::string& name) {
  constexpr const char* op = "read_wav";
  Bytes in(bytes, name, op);
  const std::string_view riff = in.take(4);
  (void)in.take(4);  // the size of all, which writers that stream leave open
  require(riff == "RIFF" && in.take(4) == "WAVE", ErrorKind::io, op, name, " is not a WAV file");
  std::optional<Format> format;
  while (in.left() >= 8) {
    const std::string_view id = in.take(4);
    const uint32_t size = in.little_endian_32();
    // Programs that write into a pipe cannot go back to say how much sound there was.
    const bool open = id == "data" && size == std::numeric_limits<uint32_t>::max();
    const std::string_view chunk = in.take(open ? in.left() : size);
    if (id == "fmt ") format = format_of(chunk, name);
    if (id == "data") {
      require(format.has_value(), ErrorKind::io, op, name, " has its sound before its format");
      return {samples_of(chunk, *format, name), format->rate};
    }
    if (size % 2 == 1 && in.left() > 0) (void)in.take(1);
  }
  throw_error(ErrorKind::io, op, name, " has no sound in it: there is no data chunk");
}

Audio read_wav(const std::string& path) { return parse_wav(read_file(path, "read_wav"), path); }

void write_wav(const std::string& path, const Tensor& samples, Int sample_rate, const WavOptions& o) {
  constexpr const char* op = "write_wav";
  const int bits = o.bits_per_sample;
  require(is_floating(samples.checked(op).dtype()), ErrorKind::dtype, op, "samples are floating, got ",
          samples.dtype());
  require(samples.dim() == 1 || samples.dim() == 2, ErrorKind::shape, op,
          "samples are [frames] or [channels, frames], got ", samples);
  require(o.floating ? bits == 32 || bits == 16 : bits == 8 || bits == 16 || bits == 24 || bits == 32,
          ErrorKind::argument, op, "bits_per_sample is ", bits, "; it must be 8, 16, 24 or 32");
  require(sample_rate > 0 && sample_rate < int64_t(1) << 31, ErrorKind::argument, op, "sample_rate is ",
          int64_t(sample_rate));
  const int64_t channels = samples.dim() == 1 ? 1 : samples.size(0), frames = samples.size(-1),
                each = o.floating ? 4 : bits / 8;
  require(channels > 0 && channels < 1 << 15, ErrorKind::shape, op, channels, " channels");
  const Checked bytes = Checked(frames) * channels * each;
  require(bytes.within(0, (int64_t(1) << 32) - 64), ErrorKind::shape, op, "more sound than the 4 GiB of a WAV file");
  const int64_t size = bytes.value(op);
  std::string out = "RIFF";
  put(out, uint32_t(36 + size + size % 2), 4);
  out += "WAVEfmt ";
  put(out, 16, 4);
  put(out, o.floating ? ieee_float : pcm, 2);
  put(out, uint32_t(channels), 2);
  put(out, uint32_t(sample_rate), 4);
  put(out, uint32_t(std::min<int64_t>((Checked(int64_t(sample_rate)) * channels * each).value_or(0), 0xffffffff)), 4);
  put(out, uint32_t(channels * each), 2);
  put(out, uint32_t(8 * each), 2);
  out += "data";
  put(out, uint32_t(size), 4);
  const std::vector<float> values = samples.detach().to(f32).reshape({channels, frames}).to_vector<float>();
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t c = 0; c < channels; ++c) put_sample(out, values[size_t(c * frames + t)], o);
  if (size % 2 == 1) out += '\0';
  write_file(path, out, op);
}

}  // namespace volta::data
