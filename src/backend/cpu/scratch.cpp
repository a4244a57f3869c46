// Per-thread working memory on huge pages where the system has them.
#include "backend/cpu/scratch.h"

#include <cstdlib>
#include <string>

#include "volta/error.h"
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace volta::cpu {
namespace {

constexpr size_t small_page = 4096, huge_page = size_t(2) << 20;

struct Buffer {
  void* data;
  size_t bytes;
};

// Plain data, still usable after the guard below has run: kernels may be called while static objects are destroyed.
thread_local Buffer buffers[scratch_count] = {};

struct FreeAtThreadEnd {
  ~FreeAtThreadEnd() {
    for (Buffer& b : buffers) {
      std::free(b.data);
      b = {};
    }
  }
};

void* allocate(size_t bytes) {
  const size_t page = bytes >= huge_page ? huge_page : small_page;
  void* data = std::aligned_alloc(page, bytes);
  if (!data) throw Error(Error::Kind::memory, "scratch", std::to_string(bytes) + " bytes of working memory refused");
#ifdef __linux__
  if (page == huge_page) madvise(data, bytes, MADV_HUGEPAGE);  // a hint; without it the buffer works all the same
#endif
  // Kernels prefetch past what they use, and a prefetch of a page never touched walks the page tables in vain each
  // time.
  for (size_t i = 0; i < bytes; i += small_page) static_cast<volatile char*>(data)[i] = 0;
  return data;
}

void grow(Buffer& buffer, size_t bytes) {
  static thread_local FreeAtThreadEnd guard;
  static_cast<void>(&guard);
  const size_t page = bytes >= huge_page ? huge_page : small_page, rounded = (bytes + page - 1) / page * page;
  std::free(buffer.data);
  buffer = {};
  buffer = {allocate(rounded), rounded};
}

}  // namespace

void* scratch(Scratch purpose, size_t bytes) {
  Buffer& buffer = buffers[size_t(purpose)];
  if (buffer.bytes < bytes) grow(buffer, bytes);
  return buffer.data;
}

}  // namespace volta::cpu
