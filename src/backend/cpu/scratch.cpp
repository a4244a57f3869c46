// Per-thread working memory on huge pages where the system has them.
#include "backend/cpu/scratch.h"

#include <cstdlib>
#include <string>

#include "core/room.h"
#include "core/thread_end.h"
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

// Plain data, still usable after the function below has run: kernels may be called while static objects are destroyed.
constinit thread_local Buffer buffers[scratch_count] = {};

void free_all(void* of_thread) {
  auto* const list = static_cast<Buffer*>(of_thread);
  for (Buffer* b = list; b < list + scratch_count; ++b) {
    std::free(b->data);
    *b = {};
  }
}

void grow(Buffer& buffer, size_t bytes) {
  static const AtThreadEnd end(free_all);
  end.set(buffers);
  const size_t page = bytes >= huge_page ? huge_page : small_page, rounded = (bytes + page - 1) / page * page;
  require_memory(int64_t(rounded), "scratch");  // all of it is touched below, which the system may not survive
  std::free(buffer.data);
  buffer = {std::aligned_alloc(page, rounded), 0};
  if (!buffer.data)
    throw Error(Error::Kind::memory, "scratch", std::to_string(rounded) + " bytes of working memory refused");
  buffer.bytes = rounded;
#ifdef __linux__
  if (page == huge_page) madvise(buffer.data, rounded, MADV_HUGEPAGE);  // a hint; without it the buffer works as well
#endif
  // Kernels prefetch past what they use, and a prefetch of a page never touched walks the page tables in vain each time.
  for (size_t i = 0; i < rounded; i += small_page) static_cast<volatile char*>(buffer.data)[i] = 0;
}

}  // namespace

void* scratch(Scratch purpose, size_t bytes) {
  Buffer& buffer = buffers[size_t(purpose)];
  if (buffer.bytes < bytes) grow(buffer, bytes);
  return buffer.data;
}

}  // namespace volta::cpu
