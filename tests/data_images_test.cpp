// Images: what torchvision reads, round trips, folders, and files as an adversary would write them.
#include <gtest/gtest.h>
#include <unistd.h>
#include <volta/data/image.h>
#include <volta/volta.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "data_common.h"
#include "taken.h"

using namespace volta;
using namespace volta::test;
namespace fs = std::filesystem;

namespace {

const std::string folder = VOLTA_TEST_DATA "/data/images/";

std::string bytes_of(const std::string& name) {
  std::ifstream in(folder + name, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}
int64_t distance(const Tensor& a, const Tensor& b) { return (a.to(i64) - b.to(i64)).abs().max().item<int64_t>(); }

const std::vector<std::string>& images() {
  static const std::vector<std::string> list = {
      "rgb.jpg",     "progressive.jpg", "full.jpg",       "gray.jpg",    "cmyk.jpg",          "rgb.png",
      "rgba.png",    "gray.png",        "gray_alpha.png", "palette.png", "palette_alpha.png", "one_bit.png",
      "sixteen.png", "rgb.ppm",         "gray.pgm",       "rgb.bmp",     "gray.bmp"};
  return list;
}

}  // namespace

TEST(DataImages, EqualTorchvision) {
  std::ifstream in(folder + "expected.bin", std::ios::binary);
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    std::istringstream words(line);
    std::string name, mode, sizes, size;
    words >> name >> mode >> sizes;
    Shape shape;
    for (std::istringstream list(sizes); std::getline(list, size, ',');) shape.push_back(std::stoll(size));
    const Tensor expected = empty(shape, {.dtype = u8});
    in.read(static_cast<char*>(expected.raw_data()), expected.nbytes());
    const Tensor x = data::read_image(folder + name, {.mode = mode});
    ASSERT_EQ(x.shape(), shape) << line;
    // Other versions of libjpeg round a step differently, gray from CMYK two; PNG is exact, but for gray from colours.
    const bool exact = (name.ends_with(".png") && mode != "gray" && name != "sixteen.png") || name.ends_with(".bmp") ||
                       name.ends_with("m");
    EXPECT_LE(distance(x, expected), exact ? 0 : name.ends_with(".png") ? 1 : 2) << line;
  }
  EXPECT_EQ(count, 12 * 3 - 3 + 5);
}

TEST(DataImages, Modes) {
  for (const std::string& name : images())
    for (const auto& [mode, channels] :
         std::vector<std::pair<const char*, int>>{{"gray", 1}, {"gray_alpha", 2}, {"rgb", 3}, {"rgb_alpha", 4}})
      EXPECT_EQ(data::read_image(folder + name, {.mode = mode}).shape(), (Shape{channels, 13, 18})) << name;
  refused([] { (void)data::read_image(folder + "rgb.png", {.mode = "color"}); }, Error::Kind::argument);
}

// One colour marked as transparent makes no channel of its own, as in torchvision, unless alpha is asked for.
TEST(DataImages, TransparentColours) {
  const auto png = [](const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
  };
  const std::string
      gray =
          png("89504e470d0a1a0a0000000d4948445200000002000000010800000000d14920560000000274524e53000506f939b7000000"
              "0b49444154789c63606503000013000c0e96b8a70000000049454e44ae426082"),
      rgb =
          png("89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000674524e53000100020003c94bab"
              "f50000000f49444154789c636064626661650300003f001621bad4540000000049454e44ae426082");
  const auto read = [](const std::string& bytes, const char* mode) {
    return data::decode_image(bytes, {.mode = mode}).to(i64).flatten(1);
  };
  EXPECT_TRUE(equal(read(gray, "unchanged"), tensor({{5, 6}})));
  EXPECT_TRUE(equal(read(gray, "gray_alpha"), tensor({{5, 6}, {0, 255}})));
  EXPECT_TRUE(equal(read(rgb, "unchanged"), tensor({{1, 4}, {2, 5}, {3, 6}})));
  EXPECT_TRUE(equal(read(rgb, "rgb_alpha"), tensor({{1, 4}, {2, 5}, {3, 6}, {0, 255}})));
}

TEST(DataImages, ScaledDecoding) {
  const Tensor whole = data::read_image(folder + "large.jpg");
  EXPECT_EQ(whole.shape(), (Shape{3, 64, 96}));
  for (const auto& [side, height] :
       std::vector<std::pair<int, int>>{{64, 64}, {33, 64}, {32, 32}, {20, 32}, {16, 16}, {9, 16}, {8, 8}, {1, 8}}) {
    const Tensor x = data::read_image(folder + "large.jpg", {.min_side = side});
    EXPECT_EQ(x.shape(), (Shape{3, height, height * 3 / 2})) << side;
    const Tensor averaged = avg_pool2d(whole.to(f32).unsqueeze(0), 64 / height).squeeze(0);
    EXPECT_LE((averaged - x.to(f32)).abs().mean().item<float>(), 6) << side;
  }
  refused([] { (void)data::read_image(folder + "rgb.jpg", {.min_side = -1}); }, Error::Kind::argument);
}

// Every part of every kind of file is, to the bit, that part of the whole.
TEST(DataImages, Regions) {
  std::vector<std::string> names = images();
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("large")) names.push_back(entry.path().filename());
  ASSERT_EQ(names.size(), images().size() + 11);
  for (const std::string& name : names)
    for (const int side : {0, 8, 30}) {
      const std::string bytes = bytes_of(name);
      const Tensor whole = data::decode_image(bytes, {.min_side = side});
      const int64_t h = whole.size(1), w = whole.size(2);
      const auto check = [&](const data::Region& r) {
        const auto region = [&](int64_t height, int64_t width) {
          EXPECT_EQ((Shape{height, width}), (Shape{h, w}));
          return r;
        };
        const Tensor part = data::decode_image(bytes, {.min_side = side, .region = region});
        EXPECT_TRUE(equal(part, data::functional::crop(whole, r)))
            << name << " " << side << ": " << r.top << ", " << r.left << ", " << r.height << " x " << r.width;
      };
      for (int64_t y = 0; y < h; ++y) {
        check({y, 0, 1, w});
        check({y, w / 3, h - y, w - w / 3});
        check({0, w / 2, y + 1, 1});
      }
      for (int64_t x = 0; x < w; ++x) {
        check({0, x, h, 1});
        check({h / 3, x, h - h / 3, w - x});
        check({h / 2, 0, 1, x + 1});
      }
      std::mt19937 random(3);
      for (int i = 0; i < 200; ++i) {
        const int64_t top = int64_t(random() % uint64_t(h)), left = int64_t(random() % uint64_t(w));
        check({top, left, 1 + int64_t(random() % uint64_t(h - top)), 1 + int64_t(random() % uint64_t(w - left))});
      }
    }
}

TEST(DataImages, RegionsOutsideAreRefused) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const char* name : {"rgb.jpg", "rgb.png", "progressive.jpg", "rgb.bmp"})
    for (const data::Region& r : std::vector<data::Region>{{-1, 0, 2, 2},
                                                           {0, -1, 2, 2},
                                                           {0, 0, 14, 1},
                                                           {0, 0, 1, 19},
                                                           {13, 0, 1, 1},
                                                           {0, 18, 1, 1},
                                                           {0, 0, 0, 1},
                                                           {0, 0, 1, 0},
                                                           {most, 0, 1, 1},
                                                           {1, 0, most, 1},
                                                           {0, 1, 1, most},
                                                           {0, most, 1, most},
                                                           {0, 0, -3, 3}}) {
      const std::string text =
          refused([&] { (void)data::read_image(folder + name, {.region = [&](int64_t, int64_t) { return r; }}); },
                  Error::Kind::argument);
      EXPECT_TRUE(contains(text, "18 x 13") && contains(text, name)) << text;
    }
  const auto thrower = [](int64_t, int64_t) -> data::Region { throw std::runtime_error("no"); };
  EXPECT_THROW((void)data::read_image(folder + "rgb.jpg", {.region = thrower}), std::runtime_error);
}

// A transform that begins with a crop gives what it gives of the whole image, from the same random numbers.
TEST(DataImages, CropsAreDecodedAlone) {
  const fs::path root = fs::temp_directory_path() / ("volta_crops_" + std::to_string(getpid()));
  for (const char* kind : {"a", "b"}) {
    fs::create_directories(root / kind);
    for (const char* name : {"large_2x2.jpg", "large_progressive.jpg", "rgb.png", "large_cmyk.jpg"})
      fs::copy_file(folder + name, root / kind / name);
  }
  const data::ImageFolder set(root.string());
  const std::map<std::string, data::Transform> list = {
      {"resized", data::random_resized_crop(6)},
      {"crop", data::random_crop({5, 9})},
      {"padded", data::random_crop(20, {.padding = 4})},
      {"chain", data::compose(data::random_resized_crop({7, 5}), data::random_horizontal_flip(), data::to_tensor())},
      {"nested",
       data::compose(data::compose(data::random_crop(9), data::random_vertical_flip()), data::random_resized_crop(4))},
      {"one", data::compose(data::random_crop(9))},
      {"later", data::compose(data::random_horizontal_flip(), data::random_crop(9))},
      {"none", data::compose(std::vector<data::Transform>{})},
  };
  for (const auto& entry : list) {
    const std::string& name = entry.first;
    const data::Transform& f = entry.second;
    const auto direct = data::map(set, data::on_first(f));
    const auto picked = data::map(data::subset(set, {6, 1, 3}), data::on_first(f));
    const auto whole = data::map(set, [&](const Tensor& x, int64_t y, Generator& g) { return std::tuple(f(x, g), y); });
    EXPECT_EQ(f.cut() != nullptr, name != "padded" && name != "later" && name != "none") << name;
    for (int64_t i = 0; i < set.size(); ++i)
      for (uint64_t seed = 0; seed < 6; ++seed) {
        manual_seed(seed);
        const auto [x, label] = whole.get(i);
        const Tensor after = rand({2});
        manual_seed(seed);
        const auto [y, same] = direct.get(i);
        EXPECT_TRUE(equal(rand({2}), after)) << name << ": the random numbers are as many";
        EXPECT_TRUE(equal(x, y)) << name << " " << set.path(i);
        EXPECT_EQ(label, same);
      }
    for (const auto& [k, i] : std::vector<std::pair<int64_t, int64_t>>{{0, 6}, {1, 1}, {2, 3}}) {
      manual_seed(5);
      const auto x = picked.get(k);
      manual_seed(5);
      EXPECT_TRUE(equal(std::get<0>(x), std::get<0>(direct.get(i)))) << name;
    }
    refused([&] { (void)picked.get(3); }, Error::Kind::index);
    refused([&] { (void)direct.get(8); }, Error::Kind::index);
  }
  refused([&] { (void)data::map(set, data::on_first(data::random_crop(14))).get(3); }, Error::Kind::shape);
  fs::remove_all(root);
}

TEST(DataImages, RoundTrips) {
  const fs::path path = fs::temp_directory_path() / ("volta_image_" + std::to_string(getpid()));
  const Tensor smooth = data::read_image(folder + "rgb.png");
  for (int64_t channels = 1; channels <= 4; ++channels)
    for (const Tensor& x :
         {randint(0, 256, {channels, 7, 5}).to(u8), randint(0, 256, {7, 5, channels}).to(u8).permute({2, 0, 1})}) {
      data::write_png(path.string(), x, {.compression_level = int(channels)});
      EXPECT_TRUE(equal(data::read_image(path.string()), x));
    }
  data::write_jpeg(path.string(), smooth, {.quality = 95});
  EXPECT_LE((data::read_image(path.string()).to(f32) - smooth.to(f32)).abs().mean().item<float>(), 8);
  data::write_jpeg(path.string(), smooth[0]);
  EXPECT_EQ(data::read_image(path.string()).shape(), (Shape{1, 13, 18}));
  fs::remove(path);
  refused([&] { data::write_png(path.string(), smooth.to(f32)); }, Error::Kind::dtype);
  refused([&] { data::write_png(path.string(), zeros({5, 4, 4}, {.dtype = u8})); }, Error::Kind::shape);
  refused([&] { data::write_png(path.string(), zeros({3, 0, 4}, {.dtype = u8})); }, Error::Kind::shape);
  refused([&] { data::write_jpeg(path.string(), zeros({2, 4, 4}, {.dtype = u8})); }, Error::Kind::shape);
  refused([&] { data::write_jpeg(path.string(), smooth, {.quality = 0}); }, Error::Kind::argument);
  refused([&] { data::write_png(path.string(), smooth, {.compression_level = 10}); }, Error::Kind::argument);
  EXPECT_TRUE(contains(refused([&] { data::write_png("/nowhere/a.png", smooth); }), "/nowhere/a.png"));
}

TEST(DataImages, TruncatedAtEveryByte) {
  for (const std::string& name : images()) {
    const std::string whole = bytes_of(name);
    ASSERT_FALSE(whole.empty()) << name;
    for (size_t n = 0; n < whole.size(); ++n) {
      const auto result = attempt([&] { return data::decode_image(std::string_view(whole).substr(0, n)); });
      if (!result) {
        EXPECT_EQ(int(result.error().kind()), int(Error::Kind::io)) << result.error().what();
      }
      // Behind the last pixels a file may lack a few bytes and nobody notices.
      if (n + 16 < whole.size()) {
        EXPECT_FALSE(bool(result)) << name << " " << n;
      }
    }
  }
}

TEST(DataImages, HugeDimensionsTakeNoMemory) {
  std::string jpeg = bytes_of("rgb.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xfe';  // 65278 x 65278
  EXPECT_TRUE(contains(refused([&] { (void)data::decode_image(jpeg); }), "65278"));
  EXPECT_TRUE(contains(refused([] { (void)data::decode_image("P6\n1000000000 1000000000\n255\nabc"); }), "1000000000"));
  refused([] { (void)data::decode_image("P6\n99999999999999999999 1\n255\nabc"); });
  refused([] { (void)data::decode_image("P6\n-3 1\n255\nabc"); });
  EXPECT_TRUE(contains(refused([] { (void)data::read_image(folder + "rgb.png", {.max_pixels = 100}); }), "max_pixels"));
  EXPECT_TRUE(contains(refused([] { (void)data::read_image(folder + "rgb.jpg", {.max_pixels = 100}); }), "max_pixels"));
  std::string bmp = bytes_of("rgb.bmp");
  bmp.replace(18, 8, "\xff\xff\xff\x7f\xff\xff\xff\x7f");
  refused([&] { (void)data::decode_image(bmp); });
  refused([] { (void)data::decode_image(""); });
  refused([] { (void)data::decode_image("GIF89a"); });
  EXPECT_TRUE(contains(refused([] { (void)data::read_image("/nowhere/a.png"); }), "/nowhere/a.png"));
}

TEST(DataImages, ManyScansAreRefused) {
  const auto bytes = [](std::initializer_list<int> list) { return std::string(list.begin(), list.end()); };
  const auto with_scans = [&](int count) {  // 8 x 8, gray: coefficients of zero, which every further scan refines
    std::string jpeg = bytes({0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}) + std::string(64, '\1') +
                       bytes({0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0, 0xff, 0xc4, 0, 20, 0, 1}) +
                       std::string(16, '\0') + bytes({0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 1, 0x7f});
    for (int i = 1; i < count; ++i) jpeg += bytes({0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0x10, 0x7f});
    return jpeg + bytes({0xff, 0xd9});
  };
  EXPECT_EQ(distance(data::decode_image(with_scans(500)), full({1, 8, 8}, 128, {.dtype = u8})), 0);
  EXPECT_TRUE(contains(refused([&] { (void)data::decode_image(with_scans(501)); }), "more than 500 scans"));
}

TEST(DataImages, Folders) {
  const fs::path root = fs::temp_directory_path() / ("volta_folder_" + std::to_string(getpid()));
  fs::create_directories(root / "cat/deep");
  fs::create_directories(root / "ant");
  const auto copy = [&](const char* from, const char* to) {
    fs::copy_file(folder + from, root / to, fs::copy_options::overwrite_existing);
  };
  copy("rgb.jpg", "cat/b.JPG");
  copy("gray.png", "cat/deep/a.png");
  copy("rgb.png", "ant/x.png");
  std::ofstream(root / "ant/notes.txt") << "no image";
  std::ofstream(root / "ant/._x.png") << "what macOS notes of x.png";
  fs::create_directories(root / ".trash");
  fs::create_directories(root / "ant/.ipynb_checkpoints");
  std::ofstream(root / "ant/.ipynb_checkpoints/x.png") << "a copy";
  const data::ImageFolder set(root.string());
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"ant", "cat"}));
  EXPECT_TRUE(set.path(0).ends_with("x.png") && set.path(1).ends_with("b.JPG"));
  data::DataLoader loader(set, {.batch_size = 3, .num_workers = 2});
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.shape(), (Shape{3, 3, 13, 18}));
    EXPECT_TRUE(equal(y, tensor({0, 1, 1})));
  }
  std::ofstream(root / "ant/z.png") << "not really";
  const data::ImageFolder broken(root.string());
  const std::string why = refused([&] {
    for (auto [x, y] : data::DataLoader(broken, {.batch_size = 4, .num_workers = 2})) (void)x;
  });
  EXPECT_TRUE(contains(why, "item 1: ") && contains(why, "z.png")) << why;
  fs::create_directories(root / "empty");
  EXPECT_TRUE(contains(refused([&] { data::ImageFolder{root.string()}; }), "empty"));
  refused([&] { data::ImageFolder{(root / "ant").string()}; });
  refused([&] { data::ImageFolder{"/nowhere"}; });
  refused([&] { (void)set.get(3); }, Error::Kind::index);
  auto left = set;
  const auto taken = volta::test::taken(left);
  EXPECT_EQ(taken.size(), 3);
  refused([&] { (void)left.size(); }, Error::Kind::argument);
  refused([&] { (void)left.get(0); }, Error::Kind::argument);
  refused([&] { (void)left.classes(); }, Error::Kind::argument);
  fs::remove_all(root);
}
