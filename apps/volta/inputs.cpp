#include "inputs.h"

#ifdef VOLTA_IMAGES
#include <volta/data/image.h>
#endif

namespace volta::app {

#ifdef VOLTA_IMAGES
namespace {

// u8 [c, h, w] as the recipe wants it, [1, c, h, w].
Tensor fitted(const Tensor& image, const Recipe& recipe) {
  const int64_t channels = recipe.size("channels"), h = recipe.size("height"), w = recipe.size("width");
  Tensor x = image.to(f32) / 255;
  if (x.size(0) == 2 || x.size(0) == 4) x = x.narrow(0, 0, x.size(0) - 1);  // without alpha
  if (channels == 1 && x.size(0) == 3) x = (x * tensor({0.299f, 0.587f, 0.114f}).reshape({3, 1, 1})).sum(0, true);
  if (channels == 3 && x.size(0) == 1) x = x.expand({3, x.size(1), x.size(2)});
  return interpolate(x.unsqueeze(0), {.size = {h, w}, .mode = "bilinear", .antialias = true});
}

}  // namespace

Tensor image_of_bytes(const std::string& bytes, const Recipe& recipe) {
  if (!recipe.takes_images()) throw Error(Error::Kind::argument, "image", "this model does not take images");
  return fitted(data::decode_image(bytes), recipe);
}
Tensor image_of_file(const std::string& path, const Recipe& recipe) { return fitted(data::read_image(path), recipe); }
#else
Tensor image_of_bytes(const std::string&, const Recipe&) {
  throw Error(Error::Kind::argument, "image", "this build reads no images: it was made without libjpeg and libpng");
}
Tensor image_of_file(const std::string& path, const Recipe& recipe) { return image_of_bytes(path, recipe); }
#endif

}  // namespace volta::app
