// Files: reading by mapping, and writing that either succeeds whole or leaves what was there.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"

namespace volta::io {

using Bytes = std::span<const std::byte>;

inline std::string_view as_text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
inline Bytes as_bytes(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

// Which function works on which file: every Error begins with both.
struct FileContext {
  const char* op;
  std::string path;

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const { fail_text((text_of(parts) + ...)); }
  template <class... Parts> void require(bool fine, const Parts&... parts) const {
    if (!fine) fail(parts...);
  }
  // What f throws without naming a file is said of this function and this file.
  template <class F> decltype(auto) about(F&& f) const {
    try {
      return f();
    } catch (const Error& e) {
      rethrow(e);
    }
  }
  [[noreturn]] void fail_text(std::string text) const;
  [[noreturn]] void rethrow(const Error& e) const;
  [[noreturn]] void fail_system(const char* what) const;  // with the text of errno
};

// A file whose pages are read when they are touched. The mapping is private: changes never reach the file.
class MappedFile {
 public:
  static std::shared_ptr<MappedFile> open(const char* op, const std::string& path);
  // As if a file of that name held these bytes.
  static std::shared_ptr<MappedFile> of_memory(const char* op, const std::string& path, std::vector<std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const FileContext& context() const { return context_; }
  Bytes bytes() const { return {data_, size_}; }
  std::byte* data() { return data_; }  // writable, for tensors that live in the mapping

 private:
  explicit MappedFile(FileContext context) : context_(std::move(context)) {}
  FileContext context_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::vector<std::byte> memory_;  // of of_memory, instead of a mapping
};

// The tensor whose bytes begin at `offset`: in the mapping itself where they are aligned for the dtype, else a copy.
// The caller has checked that they lie within the file. `name` is for the Error about booleans that are neither 0 nor 1.
Tensor tensor_in(const std::shared_ptr<MappedFile>& file, size_t offset, const Shape& shape, DType dtype,
                 std::string_view name);

// The bytes of a tensor in row-major order on the host: its own memory where that has them.
struct HostBytes {
  explicit HostBytes(const Tensor& x);
  Tensor held;
  Bytes bytes;
};

// A file that appears under its name when it is committed, whole and on the disk, or not at all. Its bytes are gathered
// and go to the disk past the cache of pages where the file system allows it, but for the last, incomplete part.
class AtomicFile {
 public:
  AtomicFile(const char* op, const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void reserve(int64_t bytes);  // finds a full disk before anything is written
  void write(Bytes bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  void overwrite(int64_t at, std::string_view text);  // what has been written before
  int64_t position() const { return position_; }
  void commit();

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::byte* buffer() { return reinterpret_cast<std::byte*>(pages_.get()); }
  void gather(Bytes bytes);
  void flush();
  void write_through(Bytes bytes);
  void set_direct(bool on);
  FileContext context_;
  std::string target_, temporary_;
  int file_ = -1;
  int64_t position_ = 0;
  bool direct_ = false;
  std::unique_ptr<Page[]> pages_;  // direct writes want aligned memory
  size_t gathered_ = 0;
};

// Where a path leads, following links, also where nothing is there yet.
std::string resolved_target(const std::string& path);
bool is_folder(const std::string& path);

// Removes the temporaries of AtomicFile in a folder whose processes are gone.
void remove_abandoned(const std::string& folder);

}  // namespace volta::io
