// A file of torch.save in memory.
#pragma once
#include <volta/io/torch_file.h>

#include "io/file.h"

namespace volta::io {

TorchValue read_torch_value(const std::shared_ptr<MappedFile>& file);
StateDict read_torch(const std::shared_ptr<MappedFile>& file);
bool looks_like_torch_zip(const std::shared_ptr<MappedFile>& file);  // an archive with a data.pkl
bool looks_like_old_torch(Bytes file);                               // of torch.save before 1.6

}  // namespace volta::io
