// NumPy's files: equal to NumPy's own in both directions, and what has no counterpart is refused by name.
#include "io/npy.h"

#include "io/endian.h"
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";

std::string npy(const std::string& header, const std::string& content = "", char major = 1) {
  std::string out = "\x93NUMPY";
  out += {major, '\0'};
  if (major == 1) io::append_little(out, uint16_t(header.size()));
  else io::append_little(out, uint32_t(header.size()));
  return out + header + content;
}
Tensor read(const std::string& text) {
  const auto file = in_memory(text, "read_npy");
  return io::read_npy({file, 0, text.size()}, "");
}
std::string refusal(const std::string& header, const std::string& content = "") {
  return error_of([&] { return read(npy(header, content)); });
}

TEST(IoNpy, ReadsWhatNumpyWrote) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const StateDict arrays = read_npz(data + name);
    for (const DType dtype : all_dtypes) {
      if (dtype == bf16) continue;
      const std::string key(volta::name(dtype));
      for (const char* suffix : {"", "_big", "_fortran"})
        EXPECT_TRUE(same(arrays.at(key + suffix), known_values({2, 3}, dtype))) << name << key << suffix;
    }
    EXPECT_EQ(arrays.at("scalar").shape(), Shape());
    EXPECT_EQ(arrays.at("scalar").item<float>(), 2.5);
    EXPECT_EQ(arrays.at("empty").shape(), (Shape{0, 3}));
  }
  EXPECT_TRUE(same(read_npz(data + "deflated.npz").at("large"), known_values({5000}, i64)));
  EXPECT_TRUE(same(read_npy(data + "plain.npy"), known_values({2, 3}, f32)));
}

TEST(IoNpy, WritesNumpysBytes) {
  const Scratch dir;
  write_npy(dir / "plain", known_values({2, 3}, f32));
  write_npy(dir / "scalar", tensor<double>(2.5));
  write_npy(dir / "vector", arange(0, 7).to(u16));
  for (const char* name : {"plain", "scalar", "vector"})
    EXPECT_EQ(read_file(dir / name), read_file(data + name + ".npy")) << name;
  EXPECT_EQ(dir.files(), 3u);
}

TEST(IoNpy, RoundTripsEveryDtypeAndLayout) {
  const Scratch dir;
  StateDict state;
  for (const DType dtype : all_dtypes)
    if (dtype != bf16) state.add(std::string(name(dtype)), known_values({3, 4}, dtype));
  state.add("transposed", randn({3, 4}).t());
  state.add("none", empty({0}));
  state.add("deep", randn({1, 2, 1, 3, 1, 2}));
  write_npz(dir / "x.npz", state);
  const StateDict back = read_npz(dir / "x.npz");
  EXPECT_EQ(back.size(), state.size());
  for (const auto& [name, x] : state) EXPECT_TRUE(same(back.at(name), x.contiguous())) << name;
  expect_in("bf16, which NumPy does not have", error_of([&] { return write_npy(dir / "h", ones({2}).to(bf16)), 0; }));
  expect_in("zero byte", error_of([&] { return write_npz(dir / "n", {{std::string("a\0b", 3), ones({2})}}), 0; }));
  expect_in("tensor 'h' is of bf16", error_of([&] { return write_npz(dir / "h", {{"h", ones({2}).to(bf16)}}), 0; }));
  expect_in("undefined", error_of([&] { return write_npy(dir / "h", Tensor()), 0; }));
  EXPECT_EQ(dir.files(), 1u);
}

TEST(IoNpy, RefusesByName) {
  const auto refused = [&](const char* name) {
    return error_of([&] { return read_npy(data + "refused_" + name + ".npy"); });
  };
  expect_in("Python objects", refused("object"));
  expect_in("complex", refused("complex"));
  expect_in("texts", refused("text"));
  expect_in("dates", refused("date"));
  expect_in("bfloat16", refused("void"));
  expect_in("several fields", refused("record"));
  expect_in("'<f16'", refused("long"));
}

TEST(IoNpy, Headers) {
  const std::string eight(8, '\0');
  EXPECT_EQ(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", eight)).shape(), (Shape{2}));
  EXPECT_EQ(read(npy("{'shape':(1,2),'fortran_order':True,'descr':\"<f4\",}  \n", eight, 2)).shape(), (Shape{1, 2}));
  EXPECT_EQ(read(npy("{'shape':(2L,),'fortran_order':True,'descr':'=f4'}", eight, 3)).shape(), (Shape{2}));
  expect_in("unknown or repeated", refusal("{'descr': '<f4', 'descr': '<f4'}"));
  expect_in("unknown or repeated", refusal("{'desc': '<f4'}"));
  expect_in("lacks", refusal("{'descr': '<f4', 'shape': (2,)}", eight));
  expect_in("damaged", refusal("{'descr': '<f4'"));
  expect_in("damaged", refusal("__import__('os')"));
  expect_in("neither True nor False", refusal("{'fortran_order': 1}"));
  expect_in("shape is damaged", refusal("{'shape': (-1,)}"));
  expect_in("shape is damaged", refusal("{'shape': (99999999999999999999,)}"));
  expect_in("axes", refusal("{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}"));
  expect_in("too large", refusal("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"));
  expect_in("too large", refusal("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}"));
  expect_in("takes 8 bytes, the file has 4",
            refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234"));
  expect_in("takes 4 bytes, the file has 8", refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", eight));
  expect_in("follows its header", refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}}", eight));
  expect_in("version 4.0", error_of([&] { return read(npy("{}", "", 4)); }));
  expect_in("magic word", error_of([&] { return read("PK"); }));
  expect_in("neither 0 nor 1", refusal("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", std::string("\1\5")));
}

TEST(IoNpy, TruncatedAtEveryByte) {
  const std::string whole = read_file(data + "plain.npy"), many = read_file(data + "stored.npz");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(attempt([&] { return read(whole.substr(0, n)); })) << n;
  for (size_t n = 0; n < many.size(); n += 7)
    EXPECT_FALSE(attempt([&] { return io::read_npz(in_memory(many.substr(0, n))); })) << n;
}

TEST(IoNpy, ArchivesOfOtherThings) {
  expect_in("is not an array (.npy)", error_of([&] { return read_npz(data + "module.pt"); }));
  expect_in("not a zip archive", error_of([&] { return read_npz(data + "plain.npy"); }));
}

}  // namespace
}  // namespace volta
