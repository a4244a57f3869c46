// Event files, read back by a decoder of the tests' own; tools/check_tensorboard has TensorBoard read them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <volta/volta.h>

#include "train/event_record.h"
#include "train/png.h"

namespace volta::test {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

template <class T> T little(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

uint32_t unmasked(uint32_t crc) { return std::rotl(crc - 0xA282EAD8u, 15); }

// The records of a file; a wrong length or checksum fails the test.
std::vector<std::string> records(const std::string& path) {
  const std::string file = read(path);
  std::string_view rest = file;
  std::vector<std::string> list;
  while (!rest.empty()) {
    if (rest.size() < 16) return ADD_FAILURE() << "a cut record", list;
    const auto length = little<uint64_t>(rest);
    EXPECT_EQ(unmasked(little<uint32_t>(rest.substr(8))), crc32c(rest.substr(0, 8)));
    if (rest.size() < 16 + length) return ADD_FAILURE() << "a cut record", list;
    const std::string_view data = rest.substr(12, length);
    EXPECT_EQ(unmasked(little<uint32_t>(rest.substr(12 + length))), crc32c(data));
    list.emplace_back(data);
    rest.remove_prefix(16 + length);
  }
  return list;
}

// Fields of a protocol buffer by number, numbers as their bytes.
class Fields {
 public:
  explicit Fields(std::string_view in) {
    while (!in.empty()) {
      const uint64_t key = varint(in);
      const int field = int(key >> 3);
      switch (key & 7) {
        case 0: wholes_[field] = int64_t(varint(in)); break;
        case 1: take(field, in, 8); break;
        case 2: take(field, in, varint(in)); break;
        case 5: take(field, in, 4); break;
        default: ADD_FAILURE() << "wire type " << (key & 7); return;
      }
    }
  }
  int64_t whole(int field) const { return wholes_.at(field); }
  const std::string& bytes(int field) const { return bytes_.at(field); }
  bool has(int field) const { return bytes_.contains(field) || wholes_.contains(field); }
  double number(int field) const { return little<double>(bytes(field)); }
  float single(int field) const { return little<float>(bytes(field)); }
  Fields message(int field) const { return Fields(bytes(field)); }
  std::vector<double> numbers(int field) const {
    std::vector<double> list;
    for (std::string_view in = bytes(field); in.size() >= 8; in.remove_prefix(8)) list.push_back(little<double>(in));
    return list;
  }

 private:
  static uint64_t varint(std::string_view& in) {
    uint64_t value = 0;
    for (int shift = 0; !in.empty() && shift < 64; shift += 7) {
      const auto byte = uint8_t(in[0]);
      in.remove_prefix(1);
      value |= uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a varint without end";
    return value;
  }
  void take(int field, std::string_view& in, size_t length) {
    if (length > in.size()) ADD_FAILURE() << "a field beyond the message";
    bytes_[field] = std::string(in.substr(0, length));
    in.remove_prefix(std::min(length, in.size()));
  }
  std::map<int, int64_t> wholes_;
  std::map<int, std::string> bytes_;
};

struct Event {
  int64_t step;
  std::string tag;
  Fields value;
};
std::vector<Event> events(const std::string& path) {
  std::vector<Event> list;
  const auto all = records(path);
  EXPECT_EQ(Fields(all.at(0)).bytes(3), "brain.Event:2");
  for (size_t i = 1; i < all.size(); ++i) {
    const Fields event(all[i]);
    EXPECT_GT(event.number(1), 1.6e9);  // seconds since 1970
    const Fields value = event.message(5).message(1);
    list.push_back({event.whole(2), value.bytes(1), value});
  }
  return list;
}

class TrainSummary : public ::testing::Test {
 protected:
  TrainSummary() : folder(fs::temp_directory_path() / ("volta_summary_" + std::to_string(::getpid()))) {}
  ~TrainSummary() override { fs::remove_all(folder); }
  std::string where(const char* name = "run") const { return (folder / name).string(); }
  fs::path folder;
};

TEST_F(TrainSummary, ChecksumsAreCastagnoli) {  // the vectors of RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

TEST_F(TrainSummary, Scalars) {
  SummaryWriter writer(where());
  for (int i = 0; i < 100; ++i) writer.add_scalar("loss", 1.0 / (i + 1), i * 1000);
  writer.add_scalar("grösse/\xFF", -std::numeric_limits<double>::infinity(), -1);
  writer.add_scalars("both", {{"a", 1.5}, {"b", std::nan("")}}, int64_t(1) << 40);
  writer.flush();
  const auto list = events(writer.path());
  ASSERT_EQ(list.size(), 103u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(list[size_t(i)].step, i * 1000);
    EXPECT_EQ(list[size_t(i)].value.single(2), float(1.0 / (i + 1)));
  }
  EXPECT_EQ(list[100].tag, "grösse/\xEF\xBF\xBD");
  EXPECT_EQ(list[100].step, -1);
  EXPECT_TRUE(std::isinf(list[100].value.single(2)));
  EXPECT_EQ(list[101].tag, "both/a");
  EXPECT_EQ(list[102].step, int64_t(1) << 40);
  EXPECT_TRUE(std::isnan(list[102].value.single(2)));
}

TEST_F(TrainSummary, Histograms) {
  SummaryWriter writer(where());
  const std::vector<double> values = {-3, -1e-13, 0, 0, 1e-13, 0.5, 0.5, 7e21, std::nan(""), INFINITY};
  writer.add_histogram("w", tensor(values), 3);
  writer.add_histogram("half", ones({2, 3}, {.dtype = bf16}).t(), 4);
  writer.add_histogram("nan", full({3}, std::nan("")), 5);
  writer.add_histogram("whole", arange(100), 6);
  writer.flush();
  const auto list = events(writer.path());
  const Fields h = list.at(0).value.message(5);
  EXPECT_EQ(h.number(1), -3);
  EXPECT_EQ(h.number(2), 7e21);
  EXPECT_EQ(h.number(3), 8);
  const auto limits = h.numbers(6), counts = h.numbers(7);
  ASSERT_EQ(limits.size(), counts.size());
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
  for (size_t i = 0; i < counts.size(); ++i) {  // each bucket is [limit before, limit)
    double want = 0;
    for (const double v : values) want += std::isfinite(v) && v < limits[i] && (i == 0 ? true : v >= limits[i - 1]);
    EXPECT_EQ(counts[i], want) << limits[i];
  }
  EXPECT_EQ(counts.front(), 0);
  EXPECT_EQ(counts.back(), 1);
  EXPECT_EQ(list.at(1).value.message(5).number(4), 6);
  EXPECT_EQ(list.at(2).value.message(5).number(3), 0);
  EXPECT_EQ(list.at(3).value.message(5).number(5), 328350);
  EXPECT_THROW(writer.add_histogram("none", zeros({0}), 1), Error);
  EXPECT_THROW(writer.add_histogram("none", Tensor(), 1), Error);
}

uint32_t big(std::string_view b) {
  return uint32_t(uint8_t(b[0])) << 24 | uint32_t(uint8_t(b[1])) << 16 | uint32_t(uint8_t(b[2])) << 8 | uint8_t(b[3]);
}

// The scanlines of a PNG with stored blocks.
std::string scanlines(std::string_view file) {
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  file.remove_prefix(8);
  std::string packed;
  while (!file.empty()) {
    const size_t length = big(file);
    if (file.substr(4, 4) == "IDAT") packed += file.substr(8, length);
    file.remove_prefix(length + 12);
  }
  std::string out;
  for (size_t at = 2; at + 4 < packed.size();) {
    const auto length = little<uint16_t>(std::string_view(packed).substr(at + 1));
    EXPECT_EQ(uint16_t(~length), little<uint16_t>(std::string_view(packed).substr(at + 3)));
    out += packed.substr(at + 5, length);
    const bool last = packed[at];
    at += 5u + length;
    if (last) break;
  }
  return out;
}

TEST_F(TrainSummary, Images) {
  SummaryWriter writer(where());
  const Tensor grey = arange(0, 200 * 400).reshape({200, 400}).to(u8);  // more than one block
  writer.add_image("grey", grey, 0);
  writer.add_image("rgb", tensor<float>({{{0, 1}}, {{0.5, 2}}, {{-1, NAN}}}), 1);
  writer.add_image("rgba", grey.reshape({200, 400, 1}).expand({200, 400, 4}).permute({2, 0, 1}), 2);
  writer.flush();
  const auto list = events(writer.path());
  const Fields first = list.at(0).value.message(4), rgb = list.at(1).value.message(4);
  EXPECT_EQ(first.whole(1), 200);
  EXPECT_EQ(first.whole(2), 400);
  EXPECT_EQ(first.whole(3), 1);
  const std::string rows = scanlines(first.bytes(4));
  ASSERT_EQ(rows.size(), 200u * 401);
  EXPECT_EQ(rows[401], 0);
  EXPECT_EQ(uint8_t(rows[402]), 400 % 256);
  EXPECT_EQ(scanlines(rgb.bytes(4)), std::string("\x00\x00\x80\x00\xFF\xFF\x00", 7));
  EXPECT_EQ(scanlines(list.at(2).value.message(4).bytes(4)).size(), 200u * 1601);
  EXPECT_THROW(writer.add_image("two", zeros({2, 4, 4}), 0), Error);
  EXPECT_THROW(writer.add_image("vector", zeros({4}), 0), Error);
  EXPECT_THROW(writer.add_image("none", zeros({3, 0, 4}), 0), Error);
  EXPECT_THROW(writer.add_image("whole", zeros({4, 4}, {.dtype = i64}), 0), Error);
  EXPECT_THROW(writer.add_image("undefined", Tensor(), 0), Error);
  EXPECT_THROW((void)png({}, int64_t(1) << 31, 1, 3, "png"), Error);
  EXPECT_THROW((void)png({}, int64_t(1) << 30, int64_t(1) << 62, 4, "png"), Error);
}

TEST_F(TrainSummary, TextsAndGraphs) {
  SummaryWriter writer(where());
  writer.add_text("note", "**bold** \xC3\x28", 7);
  const Tensor w = ones({2}, {.requires_grad = true});
  writer.add_graph_text("graph", (w * 2).sum(), 8);
  writer.flush();
  const auto list = events(writer.path());
  EXPECT_EQ(list.at(0).value.message(9).message(1).bytes(1), "text");
  EXPECT_EQ(list.at(0).value.message(8).whole(1), 7);
  EXPECT_EQ(list.at(0).value.message(8).bytes(8), "**bold** \xEF\xBF\xBD(");
  const std::string graph = list.at(1).value.message(8).bytes(8);
  EXPECT_EQ(graph.substr(0, 4), "    ");
  EXPECT_NE(graph.find("mul"), std::string::npos);
  EXPECT_THROW(writer.add_graph_text("graph", ones({2})), Error);
}

TEST_F(TrainSummary, FilesOfOneSecondAreApart) {
  SummaryWriter a(where()), b(where()), c(where(), {.suffix = ".test"});
  EXPECT_NE(a.path(), b.path());
  EXPECT_TRUE(c.path().ends_with(".test"));
  EXPECT_NE(a.path().find("events.out.tfevents."), std::string::npos);
}

TEST_F(TrainSummary, BadArgumentsAndFullDisks) {
  EXPECT_THROW(SummaryWriter(""), Error);
  EXPECT_THROW(SummaryWriter(where(), {.suffix = "/../x"}), Error);
  EXPECT_THROW(SummaryWriter(where(), {.flush_seconds = -1}), Error);
  SummaryWriter writer(where());
  EXPECT_THROW(writer.add_scalar("", 1, 0), Error);
  EXPECT_EQ(records(writer.path()).size(), 1u);
  fs::create_directories(folder);
  std::ofstream(where("file")) << "x";
  const auto r = attempt([&] { SummaryWriter inside(where("file")); });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind(), Error::Kind::io);
  EXPECT_NE(std::string(r.error().what()).find("file"), std::string::npos);
}

TEST_F(TrainSummary, ThreadsShareAWriter) {
  SummaryWriter writer(where(), {.flush_seconds = 0});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        writer.add_scalar("thread/" + std::to_string(t), i, i);
        if (i % 10 == 0) writer.add_histogram("h", rand({10}), i);
      }
    });
  for (std::thread& t : threads) t.join();
  writer.flush();
  EXPECT_EQ(events(writer.path()).size(), 4u * 55);
}

TEST_F(TrainSummary, CallbackOfFit) {
  nn::Linear model(3, 2);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  const std::vector<std::pair<Tensor, Tensor>> data(4, {randn({5, 3}), tensor({0, 1, 0, 1, 1})});
  const History h = fit(model, data, sgd,
                        {.epochs = 2,
                         .validation = data,
                         .callbacks = {callbacks::tensorboard(where(), {.every = 2, .histograms = true})}});
  std::map<std::string, int> tags;
  for (const auto& entry : fs::directory_iterator(where()))
    for (const Event& e : events(entry.path().string())) {
      ++tags[e.tag];
      if (e.tag == "epoch/val_loss" && e.step == 8) {
        EXPECT_EQ(e.value.single(2), float(h.epochs[1].values.at("val_loss")));
      }
    }
  EXPECT_EQ(tags["step/loss"], 4);
  EXPECT_EQ(tags["step/lr"], 4);
  EXPECT_EQ(tags["epoch/val_loss"], 2);
  EXPECT_EQ(tags["parameters/weight"], 2);
  EXPECT_EQ(tags["gradients/bias"], 2);
}

// What tools/check_tensorboard expects to read.
TEST_F(TrainSummary, ForTensorBoard) {
  const char* given = std::getenv("VOLTA_SUMMARY_FOLDER");
  SummaryWriter writer(given ? given : where());
  for (int i = 0; i < 10; ++i) writer.add_scalar("loss", 1.0 / (1 << i), i);
  writer.add_histogram("weights", arange(-50, 51).to(f32) / 10, 3);
  writer.add_image("picture", stack({ones({8, 6}), zeros({8, 6}), full({8, 6}, 0.5)}), 4);
  writer.add_text("note", "hello **world**", 5);
  const Tensor w = ones({2}, {.requires_grad = true});
  writer.add_graph_text("graph", (w * 2).sum());
  writer.flush();
  EXPECT_EQ(events(writer.path()).size(), 14u);
}

}  // namespace
}  // namespace volta::test
