// Writing files: every size around pages and buffers, past the cache of pages and, where that is refused, through it.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "io_common.h"

namespace volta {
namespace {

constexpr size_t page = 4096, buffer = size_t(4) << 20;

std::string known_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = char(i % 251);
  return text;
}

// The descriptor of the file that is being written in the folder.
int descriptor_in(const Scratch& dir) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(dir.path()) && target.ends_with(".tmp")) return std::stoi(entry.path().filename());
  }
  return -1;
}

bool is_direct(int file) { return (::fcntl(file, F_GETFL) & O_DIRECT) != 0; }

// From now on the kernel answers this thread, when it asks for direct writing, as a file system does that has none.
bool refuse_direct_writing() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(steps), .filter = steps};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void expect_written_whole(const Scratch& dir, size_t head, size_t body) {
  const std::string text = known_text(head + body);
  io::AtomicFile file("write", dir / "x");
  file.write(std::string_view(text).substr(0, head));
  file.write(std::string_view(text).substr(head));  // from memory that is aligned to nothing
  EXPECT_EQ(file.position(), int64_t(text.size()));
  file.commit();
  EXPECT_TRUE(read_file(dir / "x") == text) << head << " and " << body << " bytes";
}

TEST(IoFile, SizesAroundPagesAndBuffers) {
  const Scratch dir;
  for (const size_t head : {size_t(0), size_t(8), buffer - 1})
    for (const size_t body : {size_t(0), size_t(1), page - 1, page, page + 1, buffer - 8, buffer - 1, buffer,
                              buffer + 1, 2 * buffer + page, 3 * buffer - 8})
      expect_written_whole(dir, head, body);
}

TEST(IoFile, LargeFilesGoPastTheCacheOfPages) {
  const Scratch dir;
  const std::string text = known_text(3 * buffer);
  io::AtomicFile file("write", dir / "x");
  const int number = descriptor_in(dir);
  if (!is_direct(number)) GTEST_SKIP() << "this file system has no direct writing";
  file.write(text);
  EXPECT_TRUE(is_direct(number));
  file.write("the end");
  file.commit();
  EXPECT_TRUE(read_file(dir / "x") == text + "the end");
}

TEST(IoFile, OverwritesWhatWentPastTheCache) {
  const Scratch dir;
  std::string text = known_text(2 * buffer);
  io::AtomicFile file("write", dir / "x");
  file.write(text);
  file.overwrite(5, "first");
  file.overwrite(int64_t(buffer) - 2, "middle");
  file.write(text);
  file.commit();
  const std::string rest = text;
  text.replace(5, 5, "first").replace(buffer - 2, 6, "middle");
  EXPECT_TRUE(read_file(dir / "x") == text + rest);
}

// A position that is no multiple of the disk's blocks has the effect of blocks larger than pages.
TEST(IoFile, ARefusedBlockGoesThroughTheCache) {
  const Scratch dir;
  const std::string text = known_text(3 * buffer);
  io::AtomicFile file("write", dir / "x");
  ASSERT_EQ(::lseek(descriptor_in(dir), 1, SEEK_SET), 1);
  file.write(text);
  file.commit();
  EXPECT_TRUE(read_file(dir / "x") == std::string(1, '\0') + text);
}

TEST(IoFile, FileSystemsWithoutDirectWriting) {
  bool refused = false;
  std::thread([&] {
    const Scratch dir;
    refused = refuse_direct_writing();
    if (!refused) return;
    {
      const io::AtomicFile file("write", dir / "y");
      EXPECT_FALSE(is_direct(descriptor_in(dir)));
    }
    for (const size_t body : {size_t(0), page, buffer - 1, buffer, buffer + 1, 9 * buffer + 5})
      expect_written_whole(dir, 8, body);
  }).join();
  if (!refused) GTEST_SKIP() << "the kernel lets no thread restrict itself";
}

TEST(IoFile, ADiskThatFillsUpOnTheWayLeavesTheFileThatWasThere) {
  const Scratch dir;
  write_file(dir / "x", "before");
  rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{buffer + page + 100, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error_of([&] {
    io::AtomicFile file("write", dir / "x");
    file.write(known_text(3 * buffer));
    file.commit();
    return 0;
  });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  expect_in(dir / "x", message);
  expect_in("the file cannot be written", message);
  EXPECT_EQ(read_file(dir / "x"), "before");
  EXPECT_EQ(dir.files(), 1u);
}

}  // namespace
}  // namespace volta
