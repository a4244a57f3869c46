// Reading and writing whole files.
#include "data/file.h"

#include <new>
#include <stdexcept>

#include "io/file.h"
#include "io/inflate.h"

namespace volta::data {

std::string read_file(const std::string& path, const char* op) {
  const auto file = io::MappedFile::open(op, path);
  const io::Bytes bytes = file->bytes();
  try {
    if (!io::looks_like_gzip(bytes)) return std::string(io::as_text(bytes));
    // Deflate makes at most 1032 bytes of one.
    return std::string(io::as_text(io::gunzip(bytes, bytes.size() * 1032, file->context())));
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, op, path, " does not fit into memory");
  } catch (const std::length_error&) {
    throw_error(ErrorKind::memory, op, path, " does not fit into memory");
  }
}

void write_file(const std::string& path, std::string_view bytes, const char* op) {
  io::AtomicFile file(op, path);
  file.write(bytes);
  file.commit();
}

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) out += uint8_t(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > 40 ? "…'" : "'");
}

}  // namespace volta::data
