// CRC-32 of zip and gzip, eight bytes a step.
#pragma once
#include "io/file.h"

namespace volta::io {

// Goes on from the sum of what came before: crc32(b, crc32(a)) is that of a and b in a row.
uint32_t crc32(Bytes bytes, uint32_t before = 0);

}  // namespace volta::io
