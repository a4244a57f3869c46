// PNG images through libpng.
#include <csetjmp>
#include <cstring>

#include <png.h>

#include <volta/ops.h>

#include "data/file.h"
#include "images/decode.h"

namespace volta::data {
namespace images {
namespace {

// The library leaves by a jump on an error; see jpeg.cpp.
struct Failure {
  std::jmp_buf back;
  char text[128] = {};
};
[[noreturn]] void leave(png_structp png, png_const_charp why) {
  auto* f = static_cast<Failure*>(png_get_error_ptr(png));
  std::strncpy(f->text, why, sizeof f->text - 1);
  std::longjmp(f->back, 1);
}
void ignore(png_structp, png_const_charp) {}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes.data()), count_(bytes.size()) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, leave, ignore);
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool made() const { return info_; }
  // Everything becomes 8 bits, without palettes.
  bool read_header(ImageReadMode mode) {
    if (setjmp(failure_.back)) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t n) {
      auto* self = static_cast<Decoder*>(png_get_io_ptr(png));
      if (n > self->count_) png_error(png, "the file ends too early");
      std::memcpy(to, self->left_, n);
      self->left_ += n;
      self->count_ -= n;
    });
    png_set_user_limits(png_, 1 << 20, 1 << 20);
    png_set_chunk_malloc_max(png_, 1 << 23);
    png_read_info(png_, info_);
    raw_bits_ = int64_t(png_get_bit_depth(png_, info_)) * png_get_channels(png_, info_);
    const int type = png_get_color_type(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    // One colour that is to be seen through makes no channel of its own, unless alpha is asked for; as in torchvision.
    const bool alpha = mode == ImageReadMode::gray_alpha || mode == ImageReadMode::rgb_alpha;
    if (png_get_valid(png_, info_, PNG_INFO_tRNS) && (alpha || type == PNG_COLOR_TYPE_PALETTE))
      png_set_tRNS_to_alpha(png_);
    if (png_get_bit_depth(png_, info_) == 16) png_set_scale_16(png_);
    return true;
  }
  bool start() {
    if (setjmp(failure_.back)) return false;
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  bool read_rows(png_bytepp rows) {
    if (setjmp(failure_.back)) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t channels() const { return png_get_channels(png_, info_); }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  int64_t raw_bits() const { return raw_bits_; }  // of a pixel in the file
  const char* why() const { return failure_.text; }

 private:
  Failure failure_;
  const char* left_;
  size_t count_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int64_t raw_bits_ = 0;
};

bool appended(std::string& out, png_const_bytep from, size_t n) noexcept {
  try {
    out.append(reinterpret_cast<const char*>(from), n);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

class Encoder {
 public:
  Encoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure_, leave, ignore);
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~Encoder() { png_destroy_write_struct(&png_, &info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  bool run(png_bytepp rows, const Tensor& x, int level, std::string& out) {
    if (!info_ || setjmp(failure_.back)) return false;
    png_set_write_fn(
        png_, &out,
        [](png_structp png, png_bytep from, size_t n) {
          if (!appended(*static_cast<std::string*>(png_get_io_ptr(png)), from, n)) png_error(png, "out of memory");
        },
        [](png_structp) {});
    constexpr int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
    png_set_IHDR(png_, info_, png_uint_32(x.size(1)), png_uint_32(x.size(0)), 8, types[x.size(2) - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png_, level);
    png_write_info(png_, info_);
    png_write_image(png_, rows);
    png_write_end(png_, nullptr);
    return true;
  }
  const char* why() const { return failure_.text; }

 private:
  Failure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

std::vector<png_bytep> row_pointers(const Tensor& x) {
  std::vector<png_bytep> rows;
  for (int64_t i = 0; i < x.size(0); ++i)
    rows.push_back(static_cast<png_bytep>(address(x)) + i * x.size(1) * x.size(2));
  return rows;
}

}  // namespace

Tensor decode_png(const Source& source) {
  Decoder decoder(source.bytes);
  require(decoder.made(), ErrorKind::memory, read_op, "no memory to read ", source.name);
  const auto check = [&](bool fine) {
    require(fine, ErrorKind::io, read_op, source.name, " is a damaged PNG: ", std::string_view(decoder.why()));
  };
  check(decoder.read_header(source.mode));
  // Deflate makes at most 1032 bytes of one.
  const Checked raw = Checked(decoder.width()) * decoder.raw_bits() / 8 * decoder.height();
  require(raw.within(0, int64_t(source.bytes.size()) * 1040), ErrorKind::io, read_op, source.name, " says that it is ",
          decoder.width(), " x ", decoder.height(), ", but has only ", source.bytes.size(), " bytes");
  check(decoder.start());
  const Tensor pixels = canvas(decoder.height(), decoder.width(), decoder.channels(), source);
  require(decoder.row_bytes() == size_t(pixels.size(1) * pixels.size(2)), ErrorKind::internal, read_op, "rows of ",
          decoder.row_bytes(), " bytes");
  std::vector<png_bytep> rows = row_pointers(pixels);
  check(decoder.read_rows(rows.data()));
  return finished(pixels, source.mode);
}

}  // namespace images

std::string encode_png(const Tensor& image, const PngOptions& options) {
  constexpr const char* op = "write_png";
  require(options.compression_level >= 0 && options.compression_level <= 9, ErrorKind::argument, op,
          "compression_level is ", options.compression_level, ", not 0 to 9");
  const Tensor x = images::rows_to_write(image, op, {1, 2, 3, 4});
  std::vector<png_bytep> rows = images::row_pointers(x);
  std::string out;
  images::Encoder encoder;
  require(encoder.run(rows.data(), x, options.compression_level, out), ErrorKind::io, op,
          std::string_view(encoder.why()));
  return out;
}

void write_png(const std::string& path, const Tensor& image, const PngOptions& options) {
  write_file(path, encode_png(image, options), "write_png");
}

}  // namespace volta::data
