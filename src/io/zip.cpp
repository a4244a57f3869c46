// Zip as PKWARE's APPNOTE describes it, with the 64-bit extension.
#include "io/zip.h"

#include <algorithm>

#include "io/crc32.h"
#include "io/endian.h"
#include "io/inflate.h"

namespace volta::io {
namespace {

constexpr uint32_t local_mark = 0x04034b50, member_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr uint32_t end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr size_t local_bytes = 30, member_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20;
constexpr uint32_t in_extra = 0xffffffff;  // the number stands in the 64-bit extension
constexpr uint16_t extension_64 = 1, padding_id = 0x4246;
constexpr uint16_t stored = 0, deflated = 8;
constexpr size_t largest_ratio = 1032;  // of deflate

}  // namespace

bool looks_like_zip(Bytes file) {
  return file.size() >= end_bytes &&
         (load_little<uint32_t>(file, 0) == local_mark || load_little<uint32_t>(file, 0) == end_mark);
}

ZipArchive::ZipArchive(std::shared_ptr<MappedFile> file) : file_(std::move(file)) { read_directory(find_directory()); }

// The end record stands before a comment of up to 65535 bytes.
ZipArchive::Directory ZipArchive::find_directory() const {
  const FileContext& context = this->context();
  const Bytes bytes = file_->bytes();
  context.require(bytes.size() >= end_bytes, "not a zip archive: it has ", bytes.size(), " bytes");
  const size_t last = bytes.size() - end_bytes, first = last - std::min<size_t>(last, 0xffff);
  size_t at = last + 1;
  bool found = false;
  while (!found && at > first) {
    --at;
    found = load_little<uint32_t>(bytes, at) == end_mark &&
            load_little<uint16_t>(bytes, at + 20) == bytes.size() - at - end_bytes;
  }
  context.require(found, "not a zip archive, or a truncated one: its directory is missing");
  Directory d{load_little<uint32_t>(bytes, at + 16), load_little<uint32_t>(bytes, at + 12),
              load_little<uint16_t>(bytes, at + 10)};
  const bool extended = at >= locator_bytes && load_little<uint32_t>(bytes, at - locator_bytes) == locator_mark;
  if (extended) {
    const auto end64 = load_little<uint64_t>(bytes, at - locator_bytes + 8);
    context.require(at >= end64_bytes && end64 <= at - end64_bytes && load_little<uint32_t>(bytes, end64) == end64_mark,
                    "the zip archive's 64-bit directory is missing");
    d = {load_little<uint64_t>(bytes, end64 + 48), load_little<uint64_t>(bytes, end64 + 40),
         load_little<uint64_t>(bytes, end64 + 32)};
    at = end64;
  }
  context.require(d.begin <= at && d.bytes <= at - d.begin && d.count <= d.bytes / member_bytes,
                  "the zip archive's directory does not lie within the file");
  return d;
}

namespace {

// Numbers that did not fit their 32 bits stand in the extension, in this order.
void read_extension(const FileContext& context, Bytes extra, const std::string& name,
                    std::initializer_list<uint64_t*> numbers) {
  while (extra.size() >= 4) {
    const auto id = load_little<uint16_t>(extra, 0), length = load_little<uint16_t>(extra, 2);
    context.require(length <= extra.size() - 4, "member '", name, "': a damaged extra field");
    if (id == extension_64) {
      size_t at = 4;
      for (uint64_t* number : numbers) {
        if (*number != in_extra) continue;
        context.require(at + 8 <= 4 + size_t(length), "member '", name, "': a 64-bit size is missing");
        *number = load_little<uint64_t>(extra, at);
        at += 8;
      }
      return;
    }
    extra = extra.subspan(4 + size_t(length));
  }
}

}  // namespace

void ZipArchive::read_directory(const Directory& directory) {
  const FileContext& context = this->context();
  Bytes rest = file_->bytes().subspan(directory.begin, directory.bytes);
  std::vector<std::pair<size_t, size_t>> ranges;
  for (uint64_t i = 0; i < directory.count; ++i) {
    context.require(rest.size() >= member_bytes && load_little<uint32_t>(rest, 0) == member_mark,
                    "the zip archive's directory is damaged at member ", i);
    const size_t name_bytes = load_little<uint16_t>(rest, 28), extra_bytes = load_little<uint16_t>(rest, 30),
                 comment_bytes = load_little<uint16_t>(rest, 32);
    const size_t whole = member_bytes + name_bytes + extra_bytes + comment_bytes;
    context.require(whole <= rest.size(), "the zip archive's directory is cut short at member ", i);
    ZipMember member{.name = std::string(as_text(rest.subspan(member_bytes, name_bytes))),
                     .method = load_little<uint16_t>(rest, 10),
                     .crc = load_little<uint32_t>(rest, 16)};
    uint64_t compressed = load_little<uint32_t>(rest, 20), size = load_little<uint32_t>(rest, 24),
             header = load_little<uint32_t>(rest, 42);
    read_extension(context, rest.subspan(member_bytes + name_bytes, extra_bytes), member.name,
                   {&size, &compressed, &header});
    const auto flags = load_little<uint16_t>(rest, 8);
    context.require((flags & 0x2041) == 0, "member '", member.name, "' is encrypted, which is not supported");
    context.require(member.method == stored || member.method == deflated, "member '", member.name,
                    "' is compressed by method ", int64_t(member.method), "; only stored and deflate are supported");
    member.compressed = compressed;
    member.size = size;
    context.require(member.method != stored || compressed == size, "member '", member.name,
                    "' is stored, but its two sizes differ");
    context.require(size / largest_ratio <= compressed, "member '", member.name, "' claims to hold ", size,
                    " bytes, more than its ", compressed, " compressed bytes can");
    place(member, header, directory.begin);
    ranges.emplace_back(header, member.begin + member.compressed);
    context.require(by_name_.emplace(member.name, members_.size()).second, "member '", member.name, "' stands twice");
    members_.push_back(std::move(member));
    rest = rest.subspan(whole);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    context.require(ranges[i - 1].second <= ranges[i].first, "members of the zip archive overlap");
}

// The local header has its own name and extra field, of their own lengths; the data follow.
void ZipArchive::place(ZipMember& member, uint64_t header, uint64_t limit) const {
  const Bytes bytes = file_->bytes();
  context().require(
      limit >= local_bytes && header <= limit - local_bytes && load_little<uint32_t>(bytes, header) == local_mark,
      "member '", member.name, "': its header is missing");
  member.begin =
      header + local_bytes + load_little<uint16_t>(bytes, header + 26) + load_little<uint16_t>(bytes, header + 28);
  context().require(member.begin <= limit && member.compressed <= limit - member.begin, "member '", member.name,
                    "': its data do not lie within the file");
}

const ZipMember* ZipArchive::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

ZipContent ZipArchive::read(const ZipMember& member) const {
  const FileContext& context = this->context();
  ZipContent content{file_, member.begin, member.size};
  if (member.method == deflated) {
    Inflated inflated = inflate(context, file_->bytes().subspan(member.begin, member.compressed), member.size);
    context.require(inflated.bytes.size() == member.size, "member '", member.name, "' holds ", inflated.bytes.size(),
                    " bytes, its directory says ", member.size);
    content = {MappedFile::of_memory(context.op, context.path, std::move(inflated.bytes)), 0, member.size};
  }
  context.require(crc32(content.bytes()) == member.crc, "member '", member.name, "' is damaged: its checksum is wrong");
  return content;
}

namespace {

uint32_t in_32_bits(uint64_t value) { return value >= in_extra ? in_extra : uint32_t(value); }

// The part that the local header and the directory have in common.
std::string common_fields(uint32_t crc, uint64_t size, size_t name_bytes, size_t extra_bytes) {
  const bool large = size >= in_extra;
  std::string out;
  append_little(out, uint16_t(large ? 45 : 20));
  append_little(out, uint16_t(1 << 11));  // names are UTF-8
  append_little(out, stored);
  append_little(out, uint16_t(0));
  append_little(out, uint16_t(0x21));  // 1980-01-01
  append_little(out, crc);
  append_little(out, in_32_bits(size));
  append_little(out, in_32_bits(size));
  append_little(out, uint16_t(name_bytes));
  append_little(out, uint16_t(extra_bytes));
  return out;
}

std::string extension(std::initializer_list<uint64_t> numbers) {
  std::string out;
  append_little(out, extension_64);
  append_little(out, uint16_t(8 * numbers.size()));
  for (const uint64_t number : numbers) append_little(out, number);
  return out;
}

std::string local_header(const std::string& name, uint32_t crc, uint64_t size, uint64_t at) {
  std::string extra = size >= in_extra ? extension({size, size}) : "";
  const uint64_t begin = at + local_bytes + name.size() + extra.size() + 4;
  const size_t padding = (ZipWriter::alignment - begin % ZipWriter::alignment) % ZipWriter::alignment;
  append_little(extra, padding_id);
  append_little(extra, uint16_t(padding));
  extra.append(padding, 'Z');
  std::string out;
  append_little(out, local_mark);
  return out + common_fields(crc, size, name.size(), extra.size()) + name + extra;
}

std::string directory_entry(const std::string& name, uint32_t crc, uint64_t size, uint64_t at) {
  std::string extra;
  if (size >= in_extra && at >= in_extra) extra = extension({size, size, at});
  else if (size >= in_extra) extra = extension({size, size});
  else if (at >= in_extra) extra = extension({at});
  std::string out;
  append_little(out, member_mark);
  append_little(out, uint16_t(extra.empty() ? 20 : 45));
  out += common_fields(crc, size, name.size(), extra.size());
  out.append(10, '\0');  // no comment, one disk, no attributes
  append_little(out, in_32_bits(at));
  return out + name + extra;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::initializer_list<Bytes> parts) {
  uint32_t crc = 0;
  uint64_t size = 0;
  for (const Bytes part : parts) {
    crc = crc32(part, crc);
    size += part.size();
  }
  const auto at = uint64_t(file_.position());
  file_.write(local_header(name, crc, size, at));
  for (const Bytes part : parts) file_.write(part);
  directory_ += directory_entry(name, crc, size, at);
  ++count_;
}

void ZipWriter::finish() {
  const auto at = uint64_t(file_.position());
  const uint64_t bytes = directory_.size();
  std::string end;
  if (at >= in_extra || bytes >= in_extra || count_ >= 0xffff) {
    append_little(end, end64_mark);
    append_little(end, uint64_t(end64_bytes - 12));
    append_little(end, uint16_t(45));
    append_little(end, uint16_t(45));
    append_little(end, uint64_t(0));  // one disk
    for (const uint64_t number : {count_, count_, bytes, at}) append_little(end, number);
    append_little(end, locator_mark);
    append_little(end, uint32_t(0));
    append_little(end, at + bytes);
    append_little(end, uint32_t(1));
  }
  append_little(end, end_mark);
  append_little(end, uint32_t(0));
  const auto count = uint16_t(std::min<uint64_t>(count_, 0xffff));
  append_little(end, count);
  append_little(end, count);
  append_little(end, in_32_bits(bytes));
  append_little(end, in_32_bits(at));
  append_little(end, uint16_t(0));
  file_.write(directory_);
  file_.write(end);
}

}  // namespace volta::io
