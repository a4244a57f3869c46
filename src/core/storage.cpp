// Host storage: the header sits in front of the data, so that a tensor costs one allocation.
#include "core/storage.h"

#include <new>

#include "core/memory.h"

namespace volta {
namespace {

constexpr size_t header = 64;
static_assert(sizeof(Storage) <= header);

void destroy_host(Storage* s) noexcept {
  const size_t bytes = header + size_t(s->bytes);
  s->~Storage();
  host_release(s, bytes);
}

void destroy_foreign(Storage* s) noexcept {
  auto* release = static_cast<std::function<void()>*>(s->context);
  if (*release) (*release)();
  delete release;
  delete s;
}

}  // namespace

Ptr<Storage> host_storage(int64_t bytes, const char* op) {
  void* block = host_allocate(header + size_t(bytes), op);
  auto* s = new (block) Storage;
  s->data = static_cast<char*>(block) + header;
  s->bytes = bytes;
  s->destroy = destroy_host;
  return Ptr<Storage>::adopt(s);
}

Ptr<Storage> foreign_storage(void* data, int64_t bytes, Device device, std::function<void()> release) {
  auto* context = new std::function<void()>(std::move(release));
  auto* s = new Storage;
  s->device = device;
  s->data = data;
  s->bytes = bytes;
  s->destroy = destroy_foreign;
  s->context = context;
  return Ptr<Storage>::adopt(s);
}

}  // namespace volta
