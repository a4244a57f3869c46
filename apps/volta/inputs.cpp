#include "inputs.h"

#include <algorithm>

#ifdef VOLTA_IMAGES
#include <volta/data/image.h>
#endif

namespace volta::app {

#ifdef VOLTA_IMAGES
namespace {

constexpr int64_t max_sent_pixels = int64_t(1) << 25;  // a client's image; a file of one's own may be larger

// A JPEG that is much larger than the model wants is decoded smaller, as in training.
int64_t least_side(const Recipe& recipe) { return std::min(recipe.size("height"), recipe.size("width")); }

// u8 [c, h, w] as the recipe wants it, [1, c, h, w]. Floats of the full size are made for one channel at a time.
Tensor fitted(const Tensor& image, const Recipe& recipe) {
  const int64_t channels = recipe.size("channels"), h = recipe.size("height"), w = recipe.size("width");
  std::vector<Tensor> parts;
  for (int64_t c = 0; c < (image.size(0) < 3 ? 1 : 3); ++c)  // without alpha
    parts.push_back(interpolate(image.narrow(0, c, 1).unsqueeze(0).to(f32),
                                {.size = {h, w}, .mode = "bilinear", .antialias = true}));
  const Tensor x = cat(parts, 1) / 255;
  if (channels == 1 && x.size(1) == 3) return (x * tensor({0.299f, 0.587f, 0.114f}).reshape({1, 3, 1, 1})).sum(1, true);
  if (channels == 3 && x.size(1) == 1) return x.expand({1, 3, h, w});
  return x;
}

}  // namespace

Tensor image_of_bytes(const std::string& bytes, const Recipe& recipe) {
  if (!recipe.takes_images()) throw Error(Error::Kind::argument, "image", "this model does not take images");
  return fitted(data::decode_image(bytes, {.min_side = least_side(recipe), .max_pixels = max_sent_pixels}), recipe);
}
Tensor image_of_file(const std::string& path, const Recipe& recipe) {
  return fitted(data::read_image(path, {.min_side = least_side(recipe)}), recipe);
}
#else
Tensor image_of_bytes(const std::string&, const Recipe&) {
  throw Error(Error::Kind::argument, "image", "this build reads no images: it was made without libjpeg and libpng");
}
Tensor image_of_file(const std::string& path, const Recipe& recipe) { return image_of_bytes(path, recipe); }
#endif

Tensor numbers_of(const data::Table& table, const std::vector<std::string>& columns, const std::string& file,
                  DType dtype) {
  data::CsvOptions numbers;
  for (const std::string& name : columns)
    if (std::holds_alternative<std::vector<std::string>>(table.column(name))) numbers.types.emplace(name, "number");
  return numbers.types.empty() ? table.to_tensor(columns, dtype)
                               : data::read_csv(file, numbers).to_tensor(columns, dtype);
}

std::optional<int64_t> not_finite(const Tensor& items) {
  if (!is_floating(items.dtype()) || items.numel() == 0) return {};
  const Tensor bad = logical_not(isfinite(items.to(f32)).reshape({items.size(0), -1}).all(1));
  return any(bad).item<bool>() ? std::optional(bad.to(u8).argmax(0).item<int64_t>()) : std::nullopt;
}

}  // namespace volta::app
