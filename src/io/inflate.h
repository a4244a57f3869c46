// Inflate: decompression of raw deflate data and of gzip files, bounded by what the caller expects.
#pragma once
#include <cstddef>
#include <vector>

#include "io/file.h"

namespace volta::io {

struct Inflated {
  std::vector<std::byte> bytes;
  size_t consumed = 0;  // of the input
};

// Decompresses one deflate stream. More than `limit` bytes of output is an Error, raised before they are stored.
Inflated inflate(const FileContext& context, Bytes compressed, size_t limit);

// A gzip file, of one or several members, with their checksums: gunzip(file.bytes(), size_t(1) << 30, file.context()).
std::vector<std::byte> gunzip(Bytes file, size_t limit, const FileContext& context = {"gunzip", "gzip data"});
bool looks_like_gzip(Bytes file);

}  // namespace volta::io
