// What decoders of images share: sizes are checked before memory is taken, and channels become those asked for.
#pragma once
#include <volta/data/image.h>

#include "core/check.h"
#include "core/checked_arithmetic.h"

namespace volta::data::images {

inline constexpr const char* read_op = "read_image";

struct Source {
  std::string_view bytes;
  const std::string& name;
  const ReadImageOptions& options;
  ImageReadMode mode;
};

// Memory for rows of interleaved channels, [height, width, channels].
Tensor canvas(int64_t height, int64_t width, int64_t channels, const Source& source);
// The part of an image of that size that the options ask for; all of it where they do not say.
Region wanted_region(int64_t height, int64_t width, const Source& source);
// The channels that the mode asks for, as [channels, height, width].
Tensor finished(const Tensor& hwc, ImageReadMode mode);

Tensor decode_jpeg(const Source& source);
Tensor decode_png(const Source& source);
Tensor decode_pnm(const Source& source);
Tensor decode_bmp(const Source& source);

// Contiguous [height, width, channels] of an image to be written; throws unless it is one.
Tensor rows_to_write(const Tensor& image, const char* op, std::initializer_list<int64_t> channels);

}  // namespace volta::data::images
