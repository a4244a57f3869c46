// The loader's side of bench/loader: epochs over digits in memory and over a folder of JPEGs, seconds printed as JSON.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include <volta/data/image.h>
#include <volta/volta.h>

using namespace volta;

namespace {

template <class Loader> double seconds_of(Loader& loader, int64_t& items) {
  const auto start = std::chrono::steady_clock::now();
  items = 0;
  for (auto&& [x, y] : loader) items += y.numel();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Loader> void report(const char* name, Loader& loader, int rounds) {
  int64_t items = 0;
  double best = 1e9;
  (void)seconds_of(loader, items);
  for (int i = 0; i < rounds; ++i) best = std::min(best, seconds_of(loader, items));
  std::printf("{\"case\": \"%s\", \"seconds\": %.9f, \"items\": %lld}\n", name, best, static_cast<long long>(items));
}

void digits(const std::string& folder) {
  const auto set = data::digits(folder);
  data::DataLoader plain(set, {.batch_size = 64, .shuffle = true, .seed = 1});
  report("digits", plain, 5);
  const auto mapped = data::map(set, data::on_first(data::normalize({0.13}, {0.27})));
  data::DataLoader transformed(mapped, {.batch_size = 64, .shuffle = true, .seed = 1});
  report("digits_normalize", transformed, 5);
}

void photographs(const std::string& folder, int64_t min_side, const char* name) {
  const data::ImageFolder set(folder, {.min_side = min_side});
  const auto augmented =
      data::map(set, data::on_first(data::compose(data::random_resized_crop(224), data::random_horizontal_flip(),
                                                  data::convert_image_dtype(),
                                                  data::normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}))));
  data::DataLoader loader(augmented, {.batch_size = 32, .shuffle = true, .num_workers = 2, .seed = 1});
  report(name, loader, 3);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3 && std::strcmp(arguments[1], "digits") == 0) {
      digits(arguments[2]);
    } else if (count == 3 && std::strcmp(arguments[1], "jpegs") == 0) {
      photographs(arguments[2], 0, "jpegs");
      photographs(arguments[2], 224, "jpegs_scaled");
    } else {
      std::fprintf(stderr, "usage: loader_volta digits|jpegs FOLDER\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
