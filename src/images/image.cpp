// Reading an image of any known format, its channels, and folders of images.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include <volta/data/dataset.h>
#include <volta/data/functional.h>
#include <volta/data/image.h>
#include <volta/ops.h>

#include "backend/allocate.h"
#include "data/file.h"
#include "images/decode.h"

namespace volta::data {
namespace images {

Tensor canvas(int64_t height, int64_t width, int64_t channels, const Source& source) {
  require(height > 0 && width > 0, ErrorKind::io, read_op, source.name, " is of size ", width, " x ", height);
  const Checked pixels = Checked(height) * width;
  require(pixels.within(1, source.options.max_pixels), ErrorKind::io, read_op, source.name, " says that it is ", width,
          " x ", height, ", more than max_pixels = ", source.options.max_pixels);
  return allocate({height, width, channels}, u8, Device(), read_op);
}

Region wanted_region(int64_t height, int64_t width, const Source& source) {
  if (!source.options.region) return {0, 0, height, width};
  const Region r = source.options.region(height, width);
  const auto inside = [](int64_t begin, int64_t size, int64_t all) {
    return begin >= 0 && size > 0 && size <= all && begin <= all - size;
  };
  require(inside(r.top, r.height, height) && inside(r.left, r.width, width), ErrorKind::argument, read_op,
          "a region of ", r.height, " rows from ", r.top, " and ", r.width, " columns from ", r.left, " of ",
          source.name, ", which is ", width, " x ", height);
  return r;
}

namespace {

struct Wanted {
  bool colour, alpha;
};
Wanted wanted(ImageReadMode mode, int64_t channels) {
  if (mode == ImageReadMode::unchanged) return {channels >= 3, channels % 2 == 0};
  return {mode == ImageReadMode::rgb || mode == ImageReadMode::rgb_alpha,
          mode == ImageReadMode::gray_alpha || mode == ImageReadMode::rgb_alpha};
}

}  // namespace

Tensor finished(const Tensor& hwc, ImageReadMode mode) {
  const Tensor x = hwc.permute({2, 0, 1});
  const int64_t channels = x.size(0);
  const bool colour = channels >= 3, alpha = channels % 2 == 0;
  const Wanted want = wanted(mode, channels);
  if (want.colour == colour && want.alpha == alpha) return x;
  Tensor light = x.narrow(0, 0, colour ? 3 : 1);
  if (want.colour != colour)
    light = want.colour ? light.expand({3, x.size(1), x.size(2)}) : functional::rgb_to_grayscale(light);
  if (!want.alpha) return light.contiguous();
  const Tensor opacity =
      alpha ? x.narrow(0, channels - 1, 1) : full({1, x.size(1), x.size(2)}, 255, {.dtype = u8, .device = Device()});
  return cat({light, opacity}, 0);
}

Tensor rows_to_write(const Tensor& image, const char* op, std::initializer_list<int64_t> channels) {
  require(image.checked(op).dtype() == u8, ErrorKind::dtype, op, "writes images of u8, got ", image.dtype(),
          "; convert_image_dtype(x, u8) makes one");
  require(image.dim() == 2 || image.dim() == 3, ErrorKind::shape, op, "needs [channels, height, width], got ", image);
  const Tensor x = image.dim() == 2 ? image.unsqueeze(0) : image;
  require(std::find(channels.begin(), channels.end(), x.size(0)) != channels.end(), ErrorKind::shape, op,
          "cannot write ", x.size(0), " channels, of an image of shape ", image);
  require(x.size(1) > 0 && x.size(2) > 0 && x.size(1) < 65500 && x.size(2) < 65500, ErrorKind::shape, op,
          "an image of shape ", image, "; sides are from 1 to 65499");
  return x.to("cpu").permute({1, 2, 0}).contiguous();
}

}  // namespace images

Tensor decode_image(std::string_view bytes, const ReadImageOptions& options, const std::string& name) {
  using namespace images;
  require(options.min_side >= 0 && options.max_pixels > 0, ErrorKind::argument, read_op, "min_side is ",
          options.min_side, " and max_pixels ", options.max_pixels);
  const Source source{bytes, name, options, options.mode.of(read_op, "mode")};
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(source);
  const auto part = [&](const Tensor& x) { return functional::crop(x, wanted_region(x.size(1), x.size(2), source)); };
  if (bytes.starts_with("\x89PNG")) return part(decode_png(source));
  if (bytes.starts_with("P5") || bytes.starts_with("P6")) return part(decode_pnm(source));
  if (bytes.starts_with("BM")) return part(decode_bmp(source));
  throw_error(ErrorKind::io, read_op, name, " is no JPEG, PNG, PPM, PGM or BMP image");
}

Tensor read_image(const std::string& path, const ReadImageOptions& options) {
  return decode_image(read_file(path, images::read_op), options, path);
}

struct ImageFolder::Files {
  std::vector<std::string> classes, paths;
  std::vector<int64_t> labels;
};

namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  for (const char* known : {".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp"})
    if (ending == known) return true;
  return false;
}

template <class F> std::vector<std::string> sorted_entries(const fs::path& folder, const F& wanted, bool deep) {
  std::vector<std::string> found;
  const auto add = [&](const fs::directory_entry& e) {
    if (wanted(e)) found.push_back(e.path().string());
  };
  // What other programs leave behind: .ipynb_checkpoints, ._photo.jpg of macOS.
  const auto hidden = [](const fs::directory_entry& e) { return e.path().filename().string().starts_with('.'); };
  try {
    if (deep) {
      fs::recursive_directory_iterator i(folder, fs::directory_options::follow_directory_symlink);
      for (; i != fs::recursive_directory_iterator(); ++i)
        if (hidden(*i)) i.disable_recursion_pending();
        else add(*i);
    } else {
      for (const auto& e : fs::directory_iterator(folder))
        if (!hidden(e)) add(e);
    }
  } catch (const fs::filesystem_error& e) {
    throw_error(ErrorKind::io, "ImageFolder", "cannot read ", folder.string(), ": ", e.code().message());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

ImageFolder::ImageFolder(const std::string& root, const ImageFolderOptions& options) : options_(options) {
  constexpr const char* op = "ImageFolder";
  (void)options.mode.of(op, "mode");
  const auto files = std::make_shared<Files>();
  const auto folder = [](const fs::directory_entry& e) { return e.is_directory(); };
  const auto picture = [](const fs::directory_entry& e) { return e.is_regular_file() && is_image(e.path()); };
  for (const std::string& name : sorted_entries(root, folder, false)) {
    const auto pictures = sorted_entries(name, picture, true);
    require(!pictures.empty(), ErrorKind::io, op, name, " has no image (.jpg, .jpeg, .png, .ppm, .pgm, .bmp) in it");
    files->labels.insert(files->labels.end(), pictures.size(), int64_t(files->classes.size()));
    files->paths.insert(files->paths.end(), pictures.begin(), pictures.end());
    files->classes.push_back(fs::path(name).filename().string());
  }
  require(!files->classes.empty(), ErrorKind::io, op, root, " has no folders in it; each class is a folder of images");
  files_ = files;
}

int64_t ImageFolder::size() const {
  if (!files_) detail::throw_empty("ImageFolder");
  return int64_t(files_->paths.size());
}
const std::vector<std::string>& ImageFolder::classes() const& {
  if (!files_) detail::throw_empty("ImageFolder");
  return files_->classes;
}
const std::string& ImageFolder::path(int64_t i) const& {
  detail::check_item(i, size(), "ImageFolder");
  return files_->paths[size_t(i)];
}
std::tuple<Tensor, int64_t> ImageFolder::get(int64_t i) const {
  return {read_image(path(i), {.mode = options_.mode, .min_side = options_.min_side}), files_->labels[size_t(i)]};
}
std::tuple<Tensor, int64_t> ImageFolder::get_for(int64_t i, const OnFirst<Transform>& f) const {
  Generator& g = default_generator();
  const Transform::Cut* cut = f.function().cut();
  if (!cut) return f(get(i), g);
  ReadImageOptions options{.mode = options_.mode, .min_side = options_.min_side};
  options.region = [&](int64_t height, int64_t width) { return cut->region(height, width, g); };
  return {cut->then(read_image(path(i), options), g), files_->labels[size_t(i)]};
}

}  // namespace volta::data
