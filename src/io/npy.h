// Arrays of NumPy at a place of a file.
#pragma once
#include <volta/io/npy.h>

#include "io/zip.h"

namespace volta::io {

// `name` is that of a member of an archive, empty for a file of its own.
Tensor read_npy(const ZipContent& content, const std::string& name);
StateDict read_npz(const std::shared_ptr<MappedFile>& file);
bool looks_like_npy(Bytes file);

}  // namespace volta::io
