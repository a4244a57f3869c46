// Zip archives: a reader of stored and deflated members, and a writer of stored ones whose data are aligned.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/file.h"

namespace volta::io {

struct ZipMember {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflate
  uint32_t crc = 0;
  size_t begin = 0, compressed = 0, size = 0;  // where its data are in the file, their bytes, and those they become
};

// The bytes of a member: in the archive itself where it is stored, else in memory.
struct ZipContent {
  std::shared_ptr<MappedFile> file;
  size_t begin = 0, size = 0;
  Bytes bytes() const { return file->bytes().subspan(begin, size); }
};

// Checks the directory when it is made, and the checksum of a member when that is read.
class ZipArchive {
 public:
  explicit ZipArchive(std::shared_ptr<MappedFile> file);
  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(const std::string& name) const;  // null where there is none
  ZipContent read(const ZipMember& member) const;
  const FileContext& context() const { return file_->context(); }

 private:
  struct Directory {
    uint64_t begin, bytes, count;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void place(ZipMember& member, uint64_t header, uint64_t limit) const;
  std::shared_ptr<MappedFile> file_;
  std::vector<ZipMember> members_;
  std::map<std::string, size_t> by_name_;
};

bool looks_like_zip(Bytes file);

class ZipWriter {
 public:
  static constexpr size_t alignment = 64;  // of the data of members
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  void add(const std::string& name, std::initializer_list<Bytes> parts);
  void finish();  // writes the directory; the file is then the caller's to commit

 private:
  AtomicFile& file_;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace volta::io
