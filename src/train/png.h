// PNG without compression, for images in logs.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace volta {

// Rows of pixels of 1, 3 or 4 bytes: grey, RGB or RGBA.
std::string png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels, const char* op);

}  // namespace volta
