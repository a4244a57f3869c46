// The parts of a safetensors file: its header, and the tensors that it describes.
#pragma once
#include <volta/io/safetensors.h>

#include "io/file.h"

namespace volta::io {

struct SafetensorsEntry {
  std::string name;
  DType dtype = f32;
  Shape shape = {};
  int64_t begin = 0, end = 0;  // of the data
};
struct SafetensorsHeader {
  Metadata metadata = {};
  std::vector<SafetensorsEntry> entries = {};  // as the header lists them
  size_t data_begin = 0;                       // in the file
};

// Checks everything that a reader relies on: the entries cover the data without gap or overlap.
SafetensorsHeader parse_safetensors_header(const MappedFile& file);
StateDict read_safetensors(const std::shared_ptr<MappedFile>& file);

// An index of shards, as text.
bool is_index(const MappedFile& file);
// All tensors of its shards, each of which `read` reads.
StateDict read_shards(const MappedFile& index, StateDict (*read)(const std::shared_ptr<MappedFile>&));
// The file of weights or the index that a folder of the Hub holds: safetensors, else PyTorch's.
std::string model_file_in(const char* op, const std::string& folder);

// Name of a tensor to the file of its shard, which lies beside the index or below.
Dict<std::string> parse_safetensors_index(const MappedFile& file);

std::string_view safetensors_name(DType dtype);
bool looks_like_safetensors(Bytes file);

// Entries in the order and with the offsets of the file, and the text that stands before the data.
struct SafetensorsLayout {
  std::vector<std::pair<SafetensorsEntry, Tensor>> tensors;
  std::string header;
  int64_t bytes = 0;  // of the whole file
};
SafetensorsLayout lay_out_safetensors(const FileContext& context, const StateDict& state, const Metadata& metadata);

// A whole number of a file as 8 bytes, the lowest first.
std::string little_endian_64(uint64_t value);

}  // namespace volta::io
