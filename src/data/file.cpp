// Reading and writing whole files.
#include "data/file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>

#include <unistd.h>

#include "io/inflate.h"

namespace volta::data {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string reason() { return std::strerror(errno); }

std::string contents(std::FILE* file, const std::string& path, const char* op) {
  std::string bytes;
  char block[1 << 16];
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (!none) bytes.reserve(size_t(size));
  while (const size_t got = std::fread(block, 1, sizeof block, file)) bytes.append(block, got);
  require(!std::ferror(file), ErrorKind::io, op, "cannot read ", path, ": ", reason());
  return bytes;
}

// Of a gzip file; deflate makes at most 1032 bytes of one.
std::string unpacked(std::string_view packed, const std::string& path, const char* op) {
  const auto bytes = io::gunzip(std::as_bytes(std::span(packed)), packed.size() * 1032, {op, path});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string read_file(const std::string& path, const char* op) {
  std::error_code none;
  require(!std::filesystem::is_directory(path, none), ErrorKind::io, op, path, " is a folder; a file was expected");
  errno = 0;
  const File file(std::fopen(path.c_str(), "rb"));
  require(bool(file), ErrorKind::io, op, "cannot open ", path, ": ", reason());
  require(std::filesystem::is_regular_file(path, none), ErrorKind::io, op, path, " is not a regular file");
  std::string bytes;
  try {
    bytes = contents(file.get(), path, op);
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, op, path, " does not fit into memory");
  } catch (const std::length_error&) {
    throw_error(ErrorKind::memory, op, path, " does not fit into memory");
  }
  return bytes.starts_with("\x1f\x8b") ? unpacked(bytes, path, op) : bytes;
}

void write_file(const std::string& path, std::string_view bytes, const char* op) {
  const std::string part = path + ".part";
  errno = 0;
  {
    File file(std::fopen(part.c_str(), "wb"));
    require(bool(file), ErrorKind::io, op, "cannot write ", part, ": ", reason());
    bool fine = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
    fine = std::fflush(file.get()) == 0 && fine;
    fine = fsync(fileno(file.get())) == 0 && fine;
    if (!fine) {
      const std::string why = reason();
      file.reset();
      std::remove(part.c_str());
      throw_error(ErrorKind::io, op, "cannot write ", path, ": ", why);
    }
  }
  if (std::rename(part.c_str(), path.c_str()) == 0) return;
  const std::string why = reason();
  std::remove(part.c_str());
  throw_error(ErrorKind::io, op, "cannot write ", path, ": ", why);
}

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) out += uint8_t(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > 40 ? "…'" : "'");
}

}  // namespace volta::data
