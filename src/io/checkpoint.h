// A checkpoint as a safetensors file: docs/formats.md describes what its metadata hold.
#pragma once
#include <volta/io/checkpoint.h>

#include "io/file.h"

namespace volta::io {

Checkpoint read_checkpoint(const std::shared_ptr<MappedFile>& file);
void write_checkpoint(const char* op, const std::string& path, const Checkpoint& checkpoint,
                      std::optional<double> measure);

// The JSON text of the metadata, and the tensors that it names.
Checkpoint read_checkpoint_state(const FileContext& context, const std::string& text, const StateDict& tensors);

// What the header alone tells.
struct CheckpointSummary {
  int64_t step = 0;
  std::optional<double> measure = {};
};
CheckpointSummary summarize_checkpoint(const MappedFile& file);

}  // namespace volta::io
