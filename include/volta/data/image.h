// Images from and to files; link volta::images. Not part of volta.h: #include <volta/data/image.h>
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <volta/choice.h>
#include <volta/data/dataset.h>
#include <volta/data/transforms.h>
#include <volta/tensor.h>

namespace volta::data {

enum class ImageReadMode { unchanged, gray, gray_alpha, rgb, rgb_alpha };
constexpr std::array<std::string_view, 5> choice_names(ImageReadMode) {
  return {"unchanged", "gray", "gray_alpha", "rgb", "rgb_alpha"};
}
struct ReadImageOptions {
  Choice<ImageReadMode> mode = ImageReadMode::unchanged;
  int64_t min_side = 0;  // a JPEG may come smaller, by 2, 4 or 8, as long as both sides are at least this; faster
  int64_t max_pixels = int64_t(1) << 28;  // larger images are refused before memory is taken for them
  // The part wanted of an image of so many rows and columns: of a JPEG no more is decoded, and damage below goes unnoticed.
  std::function<Region(int64_t height, int64_t width)> region = {};
};
// A JPEG, PNG, PPM, PGM or BMP file as u8 [channels, height, width], as torchvision.io.read_image gives it: 16 bits
// become 8, palettes and CMYK become RGB, and the orientation that a camera noted is left alone.
[[nodiscard]] Tensor read_image(const std::string& path, const ReadImageOptions& options = {});
// The same of a file's bytes; messages call them `name`.
[[nodiscard]] Tensor decode_image(std::string_view bytes, const ReadImageOptions& options = {},
                                  const std::string& name = "the image");

struct PngOptions {
  int compression_level = 6;  // from 0 to 9
};
struct JpegOptions {
  int quality = 75;  // from 1 to 100
};
// u8 [channels, height, width] of 1 to 4 channels (a JPEG of 1 or 3), or [height, width].
void write_png(const std::string& path, const Tensor& image, const PngOptions& options = {});
void write_jpeg(const std::string& path, const Tensor& image, const JpegOptions& options = {});
[[nodiscard]] std::string encode_png(const Tensor& image, const PngOptions& options = {});
[[nodiscard]] std::string encode_jpeg(const Tensor& image, const JpegOptions& options = {});

struct ImageFolderOptions {
  Choice<ImageReadMode> mode = ImageReadMode::rgb;
  int64_t min_side = 0;  // as in ReadImageOptions
};
// A folder with a folder of images for each class: items are {image, number of the class}. Classes and files are sorted
// by name: map(ImageFolder("train", {.min_side = 224}), on_first(random_resized_crop(224))). Where a transform begins with
// a crop, as here, only the crop is decoded.
class ImageFolder {
 public:
  explicit ImageFolder(const std::string& root, const ImageFolderOptions& options = {});
  int64_t size() const;
  std::tuple<Tensor, int64_t> get(int64_t i) const;
  std::tuple<Tensor, int64_t> get_for(int64_t i, const OnFirst<Transform>& f) const;  // what f makes of get(i)
  const std::vector<std::string>& classes() const&;
  std::vector<std::string> classes() && { return std::as_const(*this).classes(); }
  const std::string& path(int64_t i) const&;
  std::string path(int64_t i) && { return std::as_const(*this).path(i); }

 private:
  struct Files;
  std::shared_ptr<const Files> files_;
  ImageFolderOptions options_;
};

}  // namespace volta::data
