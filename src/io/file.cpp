// Mapping with mmap; writing to a temporary beside the target, which is synced and then renamed.
#include "io/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include <sys/mman.h>
#include <sys/stat.h>

#include <volta/grad_mode.h>
#include <volta/ops.h>

namespace volta::io {
namespace {

constexpr size_t buffered_bytes = size_t(4) << 20;
constexpr size_t largest_write = size_t(32) << 20;

std::string error_text(int error) { return std::generic_category().message(error); }

class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_for(const std::string& target) {
  static std::atomic<uint64_t> count = 0;
  static const uint64_t salt = std::random_device{}();
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string name = target.substr(folder.size()).substr(0, 180);  // names end at 255 bytes
  return folder + "." + name + "." + std::to_string(getpid()) + "-" + std::to_string(salt) + "-" +
         std::to_string(count++) + ".tmp";
}

}  // namespace

// Names come from files: control characters must not reach a terminal, nor end the text.
// Errors of this function and of kind io name a file already, which may be another: a shard.
void FileContext::rethrow(const Error& e) const {
  const std::string_view text = std::string_view(e.what()).substr(e.op().size() + 2);
  if (e.op() == op && (e.kind() == ErrorKind::io || text.starts_with(path))) throw e;
  throw Error(e.kind(), op, path + ": " + std::string(text));
}

void FileContext::fail_text(std::string text) const {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; }, '?');
  throw_error(ErrorKind::io, op, path, ": ", text);
}

void FileContext::fail_system(const char* what) const {
  const int error = errno;
  fail(what, ": ", error_text(error));
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::string resolved_target(const std::string& path) {
  constexpr int most_links = 40;  // as the system follows
  std::error_code error;
  std::filesystem::path at = path;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(at, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) return path;
    at = at.parent_path() / next;  // `next` alone where that is absolute
  }
  return at.string();
}

std::shared_ptr<MappedFile> MappedFile::open(const char* op, const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile({op, path}));
  const FileContext& context = file->context();
  context.require(path.find('\0') == std::string::npos, "the name of a file holds no null byte");
  const OpenFile handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (handle.number() < 0) {
    if (errno == ENOENT) context.fail("there is no such file");
    context.fail_system("the file cannot be opened");
  }
  struct stat status = {};
  if (::fstat(handle.number(), &status) != 0) context.fail_system("the file cannot be examined");
  context.require(!S_ISDIR(status.st_mode), "this is a folder, not a file");
  context.require(S_ISREG(status.st_mode), "this is not a regular file");
  file->size_ = size_t(status.st_size);
  if (file->size_ == 0) return file;
  void* const data =
      ::mmap(nullptr, file->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, handle.number(), 0);
  if (data == MAP_FAILED) context.fail_system("the file cannot be mapped");
  file->data_ = static_cast<std::byte*>(data);
  return file;
}

std::shared_ptr<MappedFile> MappedFile::of_memory(const char* op, const std::string& path,
                                                  std::vector<std::byte> bytes) {
  std::shared_ptr<MappedFile> file(new MappedFile({op, path}));
  file->memory_ = std::move(bytes);
  file->data_ = file->memory_.data();
  file->size_ = file->memory_.size();
  return file;
}

MappedFile::~MappedFile() {
  if (memory_.empty() && data_) ::munmap(data_, size_);
}

namespace {

void require_truths(const FileContext& context, Bytes bytes, std::string_view name) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return std::to_integer<int>(b) > 1; });
  if (wrong != bytes.end())
    context.fail("tensor '", name, "': element ", int64_t(wrong - bytes.begin()), " of dtype bool is the byte ",
                 std::to_string(std::to_integer<int>(*wrong)), ", neither 0 nor 1");
}

}  // namespace

Tensor tensor_in(const std::shared_ptr<MappedFile>& file, size_t offset, const Shape& shape, DType dtype,
                 std::string_view name) {
  const int64_t bytes = shape.numel() * size_of(dtype);
  if (bytes == 0) return empty(shape, {.dtype = dtype, .device = Device()});
  std::byte* const data = file->data() + offset;
  if (dtype == boolean) require_truths(file->context(), {data, size_t(bytes)}, name);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % uintptr_t(size_of(dtype)) == 0;
  if (!aligned) {
    Tensor copy = empty(shape, {.dtype = dtype, .device = Device()});
    std::memcpy(copy.raw_data(), data, size_t(bytes));
    return copy;
  }
  return from_blob(data, shape, {.dtype = dtype}, [file] {});
}

HostBytes::HostBytes(const Tensor& x) {
  const NoGrad off;
  held = x.detach().to(Device("cpu")).contiguous();
  bytes = {static_cast<const std::byte*>(held.numel() ? held.raw_data() : nullptr), size_t(held.nbytes())};
}

AtomicFile::AtomicFile(const char* op, const std::string& path)
    : context_{op, path}, target_(resolved_target(path)), temporary_(temporary_for(target_)) {
  context_.require(!path.empty() && path.find('\0') == std::string::npos, "this cannot be the name of a file");
  struct stat status = {};
  const bool replaces = ::stat(target_.c_str(), &status) == 0;
  context_.require(!replaces || !S_ISDIR(status.st_mode), "this is a folder; give the name of a file in it");
  context_.require(!replaces || S_ISREG(status.st_mode),
                   "this is not a regular file, which alone can be replaced whole");
  pages_ = std::make_unique_for_overwrite<Page[]>(buffered_bytes / sizeof(Page));
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) {
    if (errno == ENOENT) context_.fail("there is no folder ", folder_of(target_));
    context_.fail_system("a file cannot be made here");
  }
  if (replaces) (void)!::fchmod(file_, status.st_mode & 07777);  // its permissions stay, where that is allowed
  set_direct(true);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::reserve(int64_t bytes) {
  if (bytes > 0 && ::fallocate(file_, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && (errno == ENOSPC || errno == EFBIG))
    context_.fail_system(("the file cannot be written: " + std::to_string(bytes) + " bytes are needed").c_str());
}

// To fill the cache of pages takes longer than the disk does. Some file systems refuse to do without it.
void AtomicFile::set_direct(bool on) { direct_ = ::fcntl(file_, F_SETFL, on ? O_DIRECT : 0) == 0 && on; }

void AtomicFile::write_through(Bytes bytes) {
  while (!bytes.empty()) {
    if (direct_ && bytes.size() % sizeof(Page) != 0) set_direct(false);
    const ssize_t done = ::write(file_, bytes.data(), std::min(bytes.size(), largest_write));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EINVAL && direct_) {  // where blocks are larger than pages
      set_direct(false);
      continue;
    }
    if (done <= 0) context_.fail_system("the file cannot be written");
    bytes = bytes.subspan(size_t(done));
    // The disk begins while further bytes are copied, rather than at the final fsync. A hint: its result does not matter.
    if (!direct_) ::sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}

void AtomicFile::gather(Bytes bytes) {
  if (bytes.empty()) return;
  std::memcpy(buffer() + gathered_, bytes.data(), bytes.size());
  gathered_ += bytes.size();
}

void AtomicFile::flush() { write_through({buffer(), std::exchange(gathered_, 0)}); }

void AtomicFile::write(Bytes bytes) {
  position_ += int64_t(bytes.size());
  while (direct_ && gathered_ + bytes.size() > buffered_bytes) {
    const size_t part = buffered_bytes - gathered_;
    gather(bytes.first(part));
    flush();
    bytes = bytes.subspan(part);
  }
  if (gathered_ + bytes.size() <= buffered_bytes) return gather(bytes);
  flush();
  write_through(bytes);
}

void AtomicFile::overwrite(int64_t at, std::string_view text) {
  flush();
  set_direct(false);
  if (::pwrite(file_, text.data(), text.size(), at) != ssize_t(text.size()))
    context_.fail_system("the file cannot be written");
}

void AtomicFile::commit() {
  flush();
  if (::fsync(file_) != 0) context_.fail_system("the file cannot be brought to the disk");
  const int closed = ::close(std::exchange(file_, -1));
  if (closed != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    errno = error;
    context_.fail_system("the file cannot be put in its place");
  }
  // The new name must reach the disk too. Folders that cannot be synced (some network file systems) do that themselves.
  const OpenFile folder(::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() >= 0) ::fsync(folder.number());
}

// A temporary is called .<name>.<process>-<salt>-<count>.tmp.
void remove_abandoned(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    const size_t dash = name.find_last_of('-'),
                 salt = dash == std::string::npos ? dash : name.find_last_of('-', dash - 1);
    const size_t dot = salt == std::string::npos ? salt : name.find_last_of('.', salt);
    if (!name.starts_with('.') || !name.ends_with(".tmp") || dot == std::string::npos) continue;
    int process = 0;
    const auto [stop, wrong] = std::from_chars(name.data() + dot + 1, name.data() + salt, process);
    const bool is_process = wrong == std::errc() && stop == name.data() + salt && process > 0;
    std::error_code ignored;
    if (is_process && ::kill(process, 0) != 0 && errno == ESRCH) std::filesystem::remove(i->path(), ignored);
  }
}

}  // namespace volta::io
