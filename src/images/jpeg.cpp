// JPEG images through libjpeg-turbo.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include <volta/ops.h>

#include "data/file.h"
#include "images/decode.h"

namespace volta::data {
namespace images {
namespace {

// The library leaves by a jump on an error. Between setjmp and the jump there are only plain values: what C++ must
// destroy is made outside.
struct Failure {
  jpeg_error_mgr base;  // first: the library knows it by this address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
  bool truncated;
};

Failure& failure_of(j_common_ptr codec) { return *reinterpret_cast<Failure*>(codec->err); }
[[noreturn]] void leave(j_common_ptr codec) {
  Failure& f = failure_of(codec);
  (*codec->err->format_message)(codec, f.text);
  std::longjmp(f.back, 1);
}
// Asked for bytes beyond the end: a mark that ends the image, as the library's own source gives. Versions of the library
// differ in whether they say so.
::boolean past_the_end(j_decompress_ptr codec) {
  static const JOCTET end[] = {0xff, JPEG_EOI};
  failure_of(reinterpret_cast<j_common_ptr>(codec)).truncated = true;
  codec->src->next_input_byte = end;
  codec->src->bytes_in_buffer = sizeof end;
  return TRUE;
}
// A scan of a few bytes goes through the whole image once more. Encoders write some ten of them.
constexpr int max_scans = 500;
void count_scans(j_common_ptr codec) {
  if (reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number <= max_scans) return;
  Failure& f = failure_of(codec);
  std::snprintf(f.text, sizeof f.text, "it has more than %d scans", max_scans);
  std::longjmp(f.back, 1);
}
jpeg_error_mgr* prepare(Failure& f) {
  jpeg_std_error(&f.base);
  f.base.error_exit = leave;
  f.base.emit_message = [](j_common_ptr, int) {};  // warnings are about damage that the decoder mends
  f.text[0] = 0;
  f.truncated = false;
  return &f.base;
}

class Decoder {
 public:
  Decoder() {
    codec_.err = prepare(failure_);
    jpeg_create_decompress(&codec_);
    progress_.progress_monitor = count_scans;
    codec_.progress = &progress_;
  }
  ~Decoder() { jpeg_destroy_decompress(&codec_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header(const unsigned char* bytes, size_t size) {
    if (setjmp(failure_.back)) return false;
    jpeg_mem_src(&codec_, bytes, static_cast<unsigned long>(size));
    codec_.src->fill_input_buffer = past_the_end;
    jpeg_read_header(&codec_, TRUE);
    return true;
  }
  // Says the output's form; its sizes are then in codec().
  bool choose(J_COLOR_SPACE colours, int64_t min_side) {
    if (setjmp(failure_.back)) return false;
    codec_.out_color_space = colours;
    const int64_t shorter = codec_.image_width < codec_.image_height ? codec_.image_width : codec_.image_height;
    codec_.scale_denom = 8;
    codec_.scale_num = 8;
    if (min_side > 0)
      while (codec_.scale_num > 1 && shorter * (codec_.scale_num / 2) / 8 >= min_side) codec_.scale_num /= 2;
    jpeg_calc_output_dimensions(&codec_);
    return true;
  }
  // Starts to decode these columns; both become what rows will have, which is some more to the left.
  bool start(JDIMENSION& left, JDIMENSION& width) {
    if (setjmp(failure_.back)) return false;
    jpeg_start_decompress(&codec_);
    jpeg_crop_scanline(&codec_, &left, &width);
    return true;
  }
  bool read_rows(JDIMENSION top, JDIMENSION count, unsigned char* out, size_t stride) {
    if (setjmp(failure_.back)) return false;
    if (top > 0) jpeg_skip_scanlines(&codec_, top);
    while (codec_.output_scanline < top + count) {
      unsigned char* row = out + (codec_.output_scanline - top) * stride;
      jpeg_read_scanlines(&codec_, &row, 1);
    }
    return true;
  }
  const jpeg_decompress_struct& codec() const { return codec_; }
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct codec_;
};

// Colours are stored at half the width or less and mixed with their neighbours', which an edge of the columns decoded has
// not: it is kept two pixels away.
Region with_neighbours(Region r, int64_t width) {
  const int64_t left = std::max<int64_t>(0, r.left - 2), right = std::min(width, r.left + r.width + 2);
  return {r.top, left, r.height, right - left};
}

// CMYK as Adobe writes it, inverted; or as it is.
Tensor rgb_of_cmyk(const Tensor& x, bool inverted, const Source& source) {
  const Tensor y = canvas(x.size(0), x.size(1), 3, source);
  const auto* from = static_cast<const uint8_t*>(address(x));
  auto* to = static_cast<uint8_t*>(address(y));
  for (int64_t i = 0; i < x.size(0) * x.size(1); ++i)
    for (int64_t c = 0; c < 3; ++c) {
      const int ink = from[4 * i + c], black = from[4 * i + 3];
      to[3 * i + c] = uint8_t((inverted ? ink * black : (255 - ink) * (255 - black)) / 255);
    }
  return y;
}

class Encoder {
 public:
  Encoder() {
    codec_.err = prepare(failure_);
    jpeg_create_compress(&codec_);
  }
  ~Encoder() {
    jpeg_destroy_compress(&codec_);
    std::free(bytes_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  bool run(const unsigned char* rows, unsigned height, unsigned width, int channels, int quality) {
    if (setjmp(failure_.back)) return false;
    jpeg_mem_dest(&codec_, &bytes_, &size_);
    codec_.image_width = width;
    codec_.image_height = height;
    codec_.input_components = channels;
    codec_.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&codec_);
    jpeg_set_quality(&codec_, quality, TRUE);
    jpeg_start_compress(&codec_, TRUE);
    while (codec_.next_scanline < height) {
      auto* row = const_cast<unsigned char*>(rows + size_t(codec_.next_scanline) * width * unsigned(channels));
      jpeg_write_scanlines(&codec_, &row, 1);
    }
    jpeg_finish_compress(&codec_);
    return true;
  }
  std::string bytes() const { return {reinterpret_cast<const char*>(bytes_), size_}; }
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
  jpeg_compress_struct codec_;
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

Tensor decode_jpeg(const Source& source) {
  const auto check = [&](bool fine, const Decoder& d) {
    require(fine, ErrorKind::io, read_op, source.name, " is a damaged JPEG: ", std::string_view(d.failure().text));
  };
  Decoder decoder;
  check(decoder.read_header(reinterpret_cast<const unsigned char*>(source.bytes.data()), source.bytes.size()), decoder);
  const auto& codec = decoder.codec();
  // A block of 64 pixels takes a bit or more, unless the coding is arithmetic: what a file cannot hold is not made room for.
  const Checked pixels = Checked(int64_t(codec.image_width)) * int64_t(codec.image_height);
  require(codec.arith_code || pixels.within(0, int64_t(source.bytes.size()) * 1024), ErrorKind::io, read_op,
          source.name, " says that it is ", codec.image_width, " x ", codec.image_height, ", but has only ",
          source.bytes.size(), " bytes");
  require(pixels.within(1, source.options.max_pixels), ErrorKind::io, read_op, source.name, " says that it is ",
          codec.image_width, " x ", codec.image_height, ", more than max_pixels = ", source.options.max_pixels);
  const bool four = codec.num_components == 4;
  const bool gray =
      codec.num_components == 1 || (!four && source.mode == ImageReadMode::gray && codec.jpeg_color_space == JCS_YCbCr);
  check(decoder.choose(four ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB, source.options.min_side), decoder);
  const int channels = four ? 4 : gray ? 1 : 3;
  const Region wanted = wanted_region(codec.output_height, codec.output_width, source);
  const Region read = codec.progressive_mode ? Region{0, 0, codec.output_height, codec.output_width}
                                             : with_neighbours(wanted, codec.output_width);
  JDIMENSION left = JDIMENSION(read.left), width = JDIMENSION(read.width);
  check(decoder.start(left, width), decoder);
  const Tensor rows = canvas(read.height, codec.output_width, channels, source);
  check(decoder.read_rows(JDIMENSION(read.top), JDIMENSION(read.height), static_cast<unsigned char*>(address(rows)),
                          size_t(codec.output_width) * size_t(channels)),
        decoder);
  require(!decoder.failure().truncated, ErrorKind::io, read_op, source.name, " is a JPEG that ends too early");
  const Tensor part = (four ? rgb_of_cmyk(rows, codec.saw_Adobe_marker, source) : rows)
                          .narrow(0, wanted.top - read.top, wanted.height)
                          .narrow(1, wanted.left - int64_t(left), wanted.width);
  return finished(part, source.mode);
}

}  // namespace images

std::string encode_jpeg(const Tensor& image, const JpegOptions& options) {
  constexpr const char* op = "write_jpeg";
  require(options.quality >= 1 && options.quality <= 100, ErrorKind::argument, op, "quality is ", options.quality,
          ", not 1 to 100");
  const Tensor x = images::rows_to_write(image, op, {1, 3});
  images::Encoder encoder;
  require(encoder.run(static_cast<const unsigned char*>(address(x)), unsigned(x.size(0)), unsigned(x.size(1)),
                      int(x.size(2)), options.quality),
          ErrorKind::io, op, std::string_view(encoder.failure().text));
  return encoder.bytes();
}

void write_jpeg(const std::string& path, const Tensor& image, const JpegOptions& options) {
  write_file(path, encode_jpeg(image, options), "write_jpeg");
}

}  // namespace volta::data
