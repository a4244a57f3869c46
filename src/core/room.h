// Asks for memory that is taken elsewhere: tables in vectors, working memory of threads.
#pragma once
#include <cstdint>

namespace volta {

// Throws as an allocation of so many bytes would (storage.h), before they are touched.
void require_memory(int64_t bytes, const char* op);

}  // namespace volta
