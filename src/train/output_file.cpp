// How files are opened and written.
#include "train/output_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/check.h"

namespace volta {

OutputFile::OutputFile(const std::string& path, bool append, const char* op) : path_(path), op_(op) {
  errno = 0;
  file_.reset(std::fopen(path.c_str(), append ? "ab" : "wb"));
  if (!file_) fail("be opened for writing");
  if (std::fseek(file_.get(), 0, SEEK_END) == 0) empty_ = std::ftell(file_.get()) <= 0;
}

void OutputFile::write(std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("be written");
}

void OutputFile::begin_with(const std::string& head) {
  if (empty_) return write(head + "\n");
  std::string there(std::max<size_t>(head.size() + 1, 200), '\0');
  errno = 0;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path_.c_str(), "rb"));
  if (!file) fail("be read");
  there.resize(std::fread(there.data(), 1, there.size(), file.get()));
  if (there.empty()) return write(head + "\n");  // it has been emptied since it was opened
  require(there.starts_with(head + "\n"), ErrorKind::argument, op_, "'", path_, "' begins with '",
          there.substr(0, there.find('\n')), "', but its new rows are of '", head,
          "'; give another file, or do not append");
}

void OutputFile::flush() {
  errno = 0;
  if (std::fflush(file_.get()) != 0) fail("be written");
}

void OutputFile::fail(const char* doing) const {
  const int code = errno;
  throw_error(ErrorKind::io, op_, "'", path_, "' cannot ", doing,
              code ? ": " + std::generic_category().message(code) : "",
              code == ENOSPC ? "; free some space, or write elsewhere" : "");
}

void make_folder(const std::string& path, const char* op) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  require(!code && std::filesystem::is_directory(path, code), ErrorKind::io, op, "the folder '", path,
          "' cannot be made: ", code ? code.message() : "something else has that name");
}

}  // namespace volta
