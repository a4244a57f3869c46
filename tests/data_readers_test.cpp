// Readers of IDX, CIFAR, CSV and WAV files: values, and files as an adversary would write them.
#include <gtest/gtest.h>
#include <unistd.h>
#include <volta/volta.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "data_common.h"

using namespace volta;
using namespace volta::test;

namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("volta_data_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

std::string big(uint64_t value, int bytes) {
  std::string s;
  for (int i = bytes - 1; i >= 0; --i) s += char(value >> (8 * i) & 0xff);
  return s;
}
std::string little(uint64_t value, int bytes) {
  const std::string s = big(value, bytes);
  return {s.rbegin(), s.rend()};
}
std::string idx(int type, const std::vector<uint32_t>& sizes, const std::string& data) {
  std::string s = {0, 0, char(type), char(sizes.size())};
  for (const uint32_t n : sizes) s += big(n, 4);
  return s + data;
}

}  // namespace

TEST(DataReaders, IdxOfEveryType) {
  using data::parse_idx;
  EXPECT_TRUE(equal(parse_idx(idx(0x08, {2, 3}, "\1\2\3\4\5\xff")), tensor({{1, 2, 3}, {4, 5, 255}}).to(u8)));
  EXPECT_TRUE(equal(parse_idx(idx(0x09, {2}, "\1\xff")), tensor({1, -1}).to(i8)));
  EXPECT_TRUE(equal(parse_idx(idx(0x0b, {2}, big(0xfffe, 2) + big(300, 2))), tensor({-2, 300}).to(i16)));
  EXPECT_TRUE(equal(parse_idx(idx(0x0c, {1}, big(70000, 4))), tensor({70000}).to(i32)));
  EXPECT_TRUE(equal(parse_idx(idx(0x0d, {1}, big(0x3fc00000, 4))), tensor({1.5f})));
  EXPECT_TRUE(equal(parse_idx(idx(0x0e, {1}, big(0xbff8000000000000u, 8))), tensor<double>({-1.5})));
  EXPECT_EQ(parse_idx(idx(0x08, {}, "\7")).shape(), Shape{});
  EXPECT_EQ(parse_idx(idx(0x08, {0, 5}, "")).shape(), (Shape{0, 5}));
}

TEST(DataReaders, IdxHostile) {
  using data::parse_idx;
  for (const std::string& bad :
       {std::string(), std::string("\0\0\x08", 3), idx(0x07, {1}, "a"), idx(0x0a, {1}, "a"), idx(0x08, {2}, "a"),
        idx(0x08, {1}, "ab"), idx(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, ""),
        idx(0x0e, {0x20000000, 0x40000000, 2}, ""), idx(0x08, {0xffffffff}, "abc"),
        std::string("\1\0\x08\1", 4) + big(1, 4) + "a", idx(0x08, std::vector<uint32_t>(13, 1), "a"),
        idx(0x08, std::vector<uint32_t>(255, 1), "a"), idx(0x08, {0x80000000, 0x80000000, 4, 0}, "a")})
    refused([&] { (void)parse_idx(bad); });
  EXPECT_TRUE(contains(refused([] { (void)data::read_idx("/nowhere/x.idx"); }), "/nowhere/x.idx"));
  EXPECT_TRUE(contains(refused([] { (void)data::read_idx("/tmp"); }), "folder"));
  refused([] { (void)data::read_idx("/dev/zero"); });
}

TEST(DataReaders, Mnist) {
  const Folder folder;
  folder.write("train-images-idx3-ubyte", idx(8, {3, 2, 2}, std::string("\0\1\2\3\4\5\6\7\x08\x09\x0a\xff", 12)));
  folder.write("train-labels-idx1-ubyte", idx(8, {3}, std::string("\5\0\4", 3)));
  folder.write("t10k-images.idx3-ubyte", idx(8, {1, 2, 2}, "abcd"));
  folder.write("t10k-labels.idx1-ubyte", idx(8, {1}, "\1"));
  const auto set = data::mnist(folder.path());
  EXPECT_EQ(set.size(), 3);
  const auto [x, y] = set.get(2);
  EXPECT_EQ(x.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ((x[{0, 1, 1}].item<float>()), 1);
  EXPECT_EQ(y.item<int64_t>(), 4);
  EXPECT_EQ(y.dtype(), i64);
  EXPECT_EQ((std::get<0>(data::mnist(folder.path(), {.dtype = u8}).get(2))[{0, 1, 1}].item<int>()), 255);
  EXPECT_EQ(data::mnist(folder.path(), {.train = false}).size(), 1);
  EXPECT_EQ(data::mnist(folder.path(), {.dtype = bf16}).tensors()[0].dtype(), bf16);
  refused([&] { (void)data::mnist(folder.path(), {.dtype = i32}); }, Error::Kind::dtype);
  folder.write("train-labels-idx1-ubyte", idx(8, {2}, "\5\1"));
  EXPECT_TRUE(contains(refused([&] { (void)data::mnist(folder.path()); }), "3 images"));
  folder.write("train-labels-idx1-ubyte", "\x1f\x8b\x08 compressed");
  EXPECT_TRUE(contains(refused([&] { (void)data::mnist(folder.path()); }), "train-labels-idx1-ubyte"));
  EXPECT_TRUE(contains(refused([] { (void)data::mnist("/nowhere"); }), "train-images-idx3-ubyte in /nowhere"));
}

// As gzip stores them without compression; the checksum and the size come last.
std::string gzipped(const std::string& plain) {
  const std::string stored = "\1" + little(plain.size(), 2) + little(0xffff ^ plain.size(), 2) + plain;
  uint32_t crc = 0xffffffff;
  for (const char c : plain) {
    crc ^= uint8_t(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10) + stored + little(~crc, 4) + little(plain.size(), 4);
}

TEST(DataReaders, GzipIsUnpacked) {
  const Folder folder;
  const std::string packed = gzipped(idx(8, {3}, "abc"));
  EXPECT_TRUE(equal(data::read_idx(folder.write("x.gz", packed)), tensor({97, 98, 99}).to(u8)));
  for (size_t n = 2; n < packed.size(); ++n)
    refused([&] { (void)data::read_idx(folder.write("short.gz", packed.substr(0, n))); });
}

TEST(DataReaders, Digits) {
  const auto train = data::digits(VOLTA_TEST_DATA "/../../data/digits"),
             test = data::digits(VOLTA_TEST_DATA "/../../data/digits", {.train = false});
  EXPECT_GT(train.size(), test.size());
  const Tensor& x = train.tensors()[0];
  EXPECT_EQ(x.dim(), 4);
  EXPECT_GE(x.min().item<float>(), 0);
  EXPECT_EQ(x.max().item<float>(), 1);
  EXPECT_EQ(train.tensors()[1].max().item<int64_t>(), 9);
}

TEST(DataReaders, Cifar) {
  const Folder folder;
  std::string record(3072, '\0');
  for (size_t i = 0; i < record.size(); ++i) record[i] = char(i * 7);
  for (int i = 1; i <= 5; ++i) {
    std::string two(1, char(i));
    two.append(record).append(1, char(9)).append(record);
    folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", two);
  }
  folder.write("cifar-10-batches-bin/test_batch.bin", "\7" + record);
  const auto set = data::cifar10(folder.path(), {.dtype = u8});
  EXPECT_EQ(set.size(), 10);
  EXPECT_EQ(std::get<1>(set.get(4)).item<int64_t>(), 3);
  EXPECT_EQ((std::get<0>(set.get(4))[{2, 31, 31}].item<int>()), int(uint8_t(3071 * 7)));
  EXPECT_EQ(data::cifar10(folder.file("cifar-10-batches-bin"), {.train = false}).size(), 1);
  folder.write("cifar-100-binary/train.bin", "\x03\x42" + record);
  EXPECT_EQ(std::get<1>(data::cifar100(folder.path()).get(0)).item<int64_t>(), 0x42);
  EXPECT_EQ(std::get<1>(data::cifar100(folder.path(), {.coarse = true}).get(0)).item<int64_t>(), 3);
  refused([&] { (void)data::cifar100(folder.path(), {.train = false}); });
  refused([&] { (void)data::parse_cifar("\xa" + record, 1, 0, 10); });
  refused([&] { (void)data::parse_cifar("\1" + record + "x", 1, 0, 10); });
  EXPECT_EQ(data::parse_cifar("", 1, 0, 10).size(), 0);
  refused([&] { (void)data::parse_cifar("", 0, 0, 10); }, Error::Kind::argument);
}

TEST(DataReaders, CsvTypes) {
  const auto t = data::parse_csv("id,height,name,empty\n1,1.5,Ann,\n2, 2 ,\"B, \"\"the\"\" Bold\",3\n3,,x,NA\n");
  EXPECT_EQ(t.size(), 3);
  EXPECT_EQ(t.names(), (std::vector<std::string>{"id", "height", "name", "empty"}));
  EXPECT_TRUE(equal(t["id"], tensor({1, 2, 3})));
  EXPECT_EQ(t["height"].dtype(), f64);
  EXPECT_TRUE(std::isnan(t["height"].to_vector<double>()[2]));
  EXPECT_EQ(t.text("name")[1], "B, \"the\" Bold");
  EXPECT_EQ(t["empty"].to_vector<double>()[1], 3);
  EXPECT_EQ(t.to_tensor({"id", "height"}).shape(), (Shape{3, 2}));
  EXPECT_EQ(t.to_tensor({"id"}, i64).dtype(), i64);
  EXPECT_TRUE(contains(refused([&] { (void)t["name"]; }, Error::Kind::dtype), "name"));
  EXPECT_TRUE(contains(refused([&] { (void)t["weight"]; }, Error::Kind::index), "'height'"));
  refused([&] { (void)t.text("id"); }, Error::Kind::dtype);
  EXPECT_TRUE(t.contains("id") && !t.contains("ID"));
  // A mark that is a number itself is missing in columns of whole numbers too.
  const auto marked = data::parse_csv("a,b,c\n1,1.5,1\n-999,-999,2\n3, -999 ,3\n", {.missing = {"-999"}});
  EXPECT_EQ(marked["a"].dtype(), f64);
  EXPECT_TRUE(std::isnan(marked["a"].to_vector<double>()[1]));
  EXPECT_EQ(marked["a"].to_vector<double>()[2], 3);
  EXPECT_TRUE(std::isnan(marked["b"].to_vector<double>()[1]) && std::isnan(marked["b"].to_vector<double>()[2]));
  EXPECT_EQ(marked["c"].dtype(), i64);
  refused([] { (void)data::parse_csv("a\n-999\n", {.types = {{"a", "integer"}}, .missing = {"-999"}}); });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need all addresses
TEST(DataReaders, MissingNumbersAreNoWholeOnes) {
  const auto t = data::parse_csv("x,label\n1,2\n2,NA\n3,1\n");
  for (const DType dtype : {i64, i32, u8, boolean}) {
    const std::string said = refused([&] { (void)t.to_tensor({"x", "label"}, dtype); }, Error::Kind::argument);
    EXPECT_TRUE(contains(said, "'label'") && contains(said, "row 1 ")) << said;
  }
  EXPECT_EQ(t.to_tensor({"x"}, i64).sum().item<int64_t>(), 6);
  EXPECT_EQ(isnan(t.to_tensor({}, f64)).sum().item<int64_t>(), 1);
  EXPECT_TRUE(equal(data::parse_csv("x\n1.5\n2\n").to_tensor({}, i64), tensor({1, 2}).to(i64).unsqueeze(1)));
}

TEST(DataReaders, CsvBeyondMemoryIsRefused) {
  std::string text = "a\n";
  for (int i = 0; i < 8'000'000; ++i) text += "1\n";
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = rlim_t(pages * sysconf(_SC_PAGESIZE)) + (rlim_t(128) << 20);
  EXPECT_TRUE(lacks_memory(most, [&] { (void)data::parse_csv(text); }));
}
#endif

TEST(DataReaders, CsvForms) {
  using data::parse_csv;
  EXPECT_EQ(parse_csv("\xef\xbb\xbf"
                      "a,b\r\n1,2\r\n\r\n3,4")
                .size(),
            2);
  EXPECT_TRUE(equal(parse_csv("1\n2\n", {.header = false})["0"], tensor({1, 2})));
  EXPECT_TRUE(equal(parse_csv("a\tb\n1\t2\n", {.delimiter = '\t'})["b"], tensor({2})));
  EXPECT_TRUE(equal(parse_csv("a;b\n'1;';2\n", {.delimiter = ';', .quote = '\''})["b"], tensor({2})));
  EXPECT_EQ(parse_csv("a,b\n\"1\n2\",3\n").text("a")[0], "1\n2");
  EXPECT_EQ(parse_csv("a,b\n").size(), 0);
  EXPECT_EQ(parse_csv("a\rb\r").size(), 1);
  EXPECT_TRUE(equal(parse_csv("a,b,c\n1,2,3\n", {.columns = {"c", "a"}}).to_tensor(), tensor({{3.f, 1.f}})));
  EXPECT_EQ(parse_csv("a\n007\n", {.types = {{"a", "text"}}}).text("a")[0], "007");
  EXPECT_EQ(parse_csv("a\n7\n", {.types = {{"a", "number"}}})["a"].dtype(), f64);
  EXPECT_EQ(parse_csv("a\n9223372036854775807\n")["a"].item<int64_t>(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_csv("a\n9223372036854775808\n")["a"].dtype(), f64);
  EXPECT_TRUE(std::isinf(parse_csv("a\n1e999\n")["a"].item<double>()));
  EXPECT_EQ(parse_csv("a\n+5\n-3\n")["a"].to_vector<int64_t>()[0], 5);
  const auto c = parse_csv("k\nred\nblue\nred\n").categories("k");
  EXPECT_EQ(c.names, (std::vector<std::string>{"blue", "red"}));
  EXPECT_TRUE(equal(c.codes, tensor({1, 0, 1})));
  EXPECT_EQ(parse_csv("k\n5\n3\n").categories("k").names[0], "3");
  const auto numbers = parse_csv("k\n10\n-1\n2\n10\n").categories("k");  // in the order of numbers, not of words
  EXPECT_EQ(numbers.names, (std::vector<std::string>{"-1", "2", "10"}));
  EXPECT_TRUE(equal(numbers.codes, tensor({2, 0, 1, 2})));
}

TEST(DataReaders, CsvErrorsTellTheLine) {
  using data::parse_csv;
  EXPECT_TRUE(contains(refused([] { (void)parse_csv("a,b\n1,2\n\n1\n"); }), "line 4 has 1 fields"));
  EXPECT_TRUE(contains(refused([] { (void)parse_csv("a,b\n\"1\n2\",3\n1,2,3\n"); }), "line 4 has 3 fields"));
  EXPECT_TRUE(contains(refused([] { (void)parse_csv("a\n\"1\n"); }), "line 2"));
  EXPECT_TRUE(contains(refused([] { (void)parse_csv("a\n\"1\"2\n"); }), "line 2"));
  EXPECT_TRUE(contains(refused([] {
                         (void)parse_csv("a\n1\nx\n", {.types = {{"a", "integer"}}});
                       }),
                       "line 3, column 'a': 'x'"));
  EXPECT_TRUE(contains(refused([] { (void)parse_csv("a\n1.5\n", {.types = {{"a", "integer"}}}); }), "whole number"));
  refused([] { (void)parse_csv(""); });
  refused([] { (void)parse_csv("\n\n"); });
  refused([] { (void)parse_csv("a,a\n1,2\n"); });
  refused([] { (void)parse_csv("a\n1\n", {.columns = {"b"}}); }, Error::Kind::argument);
  refused([] { (void)parse_csv("a\n1\n", {.columns = {"a", "a"}}); }, Error::Kind::argument);
  refused([] { (void)parse_csv("a\n1\n", {.types = {{"b", "text"}}}); }, Error::Kind::argument);
  refused([] { (void)parse_csv("a\n1\n", {.types = {{"a", "float"}}}); }, Error::Kind::argument);
  refused([] { (void)parse_csv("a\n1\n", {.delimiter = '"'}); }, Error::Kind::argument);
  EXPECT_TRUE(contains(refused([] { (void)data::read_csv("/nowhere/a.csv"); }), "/nowhere/a.csv"));
  const Folder folder;
  for (const char* name : {"a.tsv", "a.tab"}) {
    const std::string text = "a\tb\n1\t2\n";
    EXPECT_EQ(data::read_csv(folder.write(name, text)).names().size(), 2u);
    EXPECT_EQ(data::read_csv(folder.write(std::string(name) + ".gz", gzipped(text))).names().size(), 2u);
  }
}

// Time grows with the columns, not with their square: it would take minutes.
TEST(DataReaders, CsvOfManyColumns) {
  constexpr int n = 100'000;
  std::string text;
  for (int i = 0; i < n; ++i) text += std::string(i > 0 ? "," : "") + "column of some name " + std::to_string(i);
  text += "\n1";
  for (int i = 1; i < n; ++i) text += ",2";
  const auto t = data::parse_csv(text);
  EXPECT_EQ(t.names().size(), size_t(n));
  EXPECT_EQ(t.to_tensor({}, i64).sum().item<int64_t>(), 2 * n - 1);
  data::Table moved = t, taken = std::move(moved);
  EXPECT_TRUE(taken.contains("column of some name 99999"));
}

TEST(DataReaders, TablesOfEqualNames) {
  const data::Table t({"a", "a"}, {std::vector<int64_t>{1}, std::vector<int64_t>{2}});
  EXPECT_EQ(t["a"].item<int64_t>(), 1);
}

TEST(DataReaders, WavRoundTrips) {
  const Folder folder;
  const std::string path = folder.file("a.wav");
  const Tensor x = linspace(-1, 1, 101).reshape({1, 101}).expand({2, 101}) * tensor({{1.f}, {-0.5f}});
  for (const int bits : {8, 16, 24, 32}) {
    data::write_wav(path, x, 44100, {.bits_per_sample = bits});
    const auto [samples, rate] = data::read_wav(path);
    EXPECT_EQ(rate, 44100);
    EXPECT_EQ(samples.shape(), (Shape{2, 101}));
    // One step: the largest positive number is a step below 1.
    EXPECT_LE((samples - x).abs().max().item<double>(), std::ldexp(1, 1 - std::min(bits, 24))) << bits;
    EXPECT_EQ(samples.min().item<float>(), -1);
  }
  data::write_wav(path, x, 8000, {.floating = true});
  EXPECT_TRUE(equal(data::read_wav(path).samples, x.contiguous()));
  data::write_wav(path, x[0].slice(0, 0, 3), 8000, {.bits_per_sample = 8});  // an odd number of bytes
  EXPECT_EQ(data::read_wav(path).samples.shape(), (Shape{1, 3}));
  data::write_wav(path, zeros({2, 0}), 8000);
  EXPECT_EQ(data::read_wav(path).samples.shape(), (Shape{2, 0}));
  data::write_wav(path, tensor({5.f, -5.f, NAN}), 8000);
  EXPECT_EQ(data::read_wav(path).samples.min().item<float>(), -1);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  refused([&] { data::write_wav(path, tensor({1, 2}), 8000); }, Error::Kind::dtype);
  refused([&] { data::write_wav(path, zeros({1, 2, 3}), 8000); }, Error::Kind::shape);
  refused([&] { data::write_wav(path, zeros({2}), 0); }, Error::Kind::argument);
  refused([&] { data::write_wav(path, zeros({2}), 8000, {.bits_per_sample = 12}); }, Error::Kind::argument);
  refused([&] { data::write_wav("/nowhere/a.wav", zeros({2}), 8000); });
}

namespace {
std::string wav(int code, int channels, int bits, const std::string& data, const std::string& more = "") {
  const std::string format = little(uint64_t(code), 2) + little(uint64_t(channels), 2) + little(16000, 4) +
                             little(uint64_t(16000 * channels * bits / 8), 4) +
                             little(uint64_t(channels * bits / 8), 2) + little(uint64_t(bits), 2) + more;
  return "RIFF" + little(0, 4) + "WAVEfmt " + little(format.size(), 4) + format + "LIST" + little(3, 4) + "abc" + '\0' +
         "data" + little(data.size(), 4) + data;
}
}  // namespace

TEST(DataReaders, WavForms) {
  using data::parse_wav;
  EXPECT_TRUE(equal(parse_wav(wav(1, 1, 16, little(0x4000, 2) + little(0xc000, 2))).samples, tensor({{0.5f, -0.5f}})));
  EXPECT_TRUE(
      equal(parse_wav(wav(1, 1, 24, little(0x400000, 3) + little(0x800000, 3))).samples, tensor({{0.5f, -1.f}})));
  EXPECT_TRUE(equal(parse_wav(wav(3, 1, 64, little(0x3fe0000000000000u, 8))).samples, tensor({{0.5f}})));
  const std::string guid = little(22, 2) + little(16, 2) + little(0, 4) + little(1, 2) + std::string(14, 'g');
  EXPECT_EQ(parse_wav(wav(0xfffe, 2, 16, std::string(8, '\0'), guid)).samples.shape(), (Shape{2, 2}));
  std::string piped = wav(1, 1, 16, little(0x4000, 2) + little(0xc000, 2));
  piped.replace(piped.size() - 8, 4, little(0xffffffff, 4));
  EXPECT_TRUE(equal(parse_wav(piped).samples, tensor({{0.5f, -0.5f}})));
  for (const std::string& bad :
       {std::string("RIFX"), wav(2, 1, 16, "ab"), wav(1, 1, 12, "ab"), wav(1, 0, 16, ""), wav(1, 2, 16, "ab"),
        wav(3, 1, 16, "ab"), wav(1, 1, 16, "ab").substr(0, 44), std::string("RIFF") + little(4, 4) + "WAVE",
        "RIFF" + little(4, 4) + "WAVEdata" + little(0, 4), "RIFF" + little(4, 4) + "WAVEfmt " + little(0xffffffff, 4),
        std::string("RIFF") + little(4, 4) + "AVI "})
    refused([&] { (void)parse_wav(bad); });
}
