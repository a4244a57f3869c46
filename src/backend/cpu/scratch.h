// Working memory of CPU kernels: one growing buffer per thread and purpose, kept between calls.
#pragma once
#include <cstddef>

namespace volta::cpu {

// Buffers of different purposes are distinct; asking again for the same purpose may move and overwrite its contents.
enum class Scratch { panels, tile, shared, partial, image, columns, result, other };
inline constexpr int scratch_count = 8;

// At least `bytes` bytes, aligned to 64. Throws Error(memory). Freed when the thread ends.
void* scratch(Scratch purpose, size_t bytes);

}  // namespace volta::cpu
