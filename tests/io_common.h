// What the tests of files share: a folder of their own, files as bytes, values that are known.
#pragma once
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/impl.h"
#include "io/file.h"

namespace volta {

// A folder that is there while it lives.
class Scratch {
 public:
  Scratch() {
    static int count = 0;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / ("volta_io_" + std::string(test ? test->name() : "") +
                                                        std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::string path() const { return folder_.string(); }
  size_t files() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++n;
    return n;
  }

 private:
  std::filesystem::path folder_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
inline std::shared_ptr<io::MappedFile> in_memory(const std::string& text, const char* op = "read") {
  const io::Bytes bytes = io::as_bytes(text);
  return io::MappedFile::of_memory(op, "file.bin", {bytes.begin(), bytes.end()});
}

constexpr DType all_dtypes[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};

// As tests/oracle/io_files.py has them.
inline Tensor known_values(const Shape& shape, DType dtype) {
  std::vector<int64_t> list(size_t(shape.numel()));
  for (size_t i = 0; i < list.size(); ++i) list[i] = dtype == boolean ? int64_t(i % 100 % 3 == 0) : int64_t(i % 100);
  return tensor(list, shape).to(dtype);
}

inline bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const io::HostBytes x(a), y(b);
  return std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end());
}

// The text of the Error that f throws, which must be one.
template <class F> std::string error_of(F&& f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not an Error: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no Error";
  return "";
}
inline void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

}  // namespace volta
