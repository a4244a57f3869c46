// The readers of files as functions of their bytes: what the suite mutates and libFuzzer leads.
#pragma once
#include <cstring>
#include <string>

#include <volta/create.h>

#include "io/checkpoint.h"
#include "io/inflate.h"
#include "io/npy.h"
#include "io/pickle.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "io/zip.h"

namespace volta::fuzz {

inline std::shared_ptr<io::MappedFile> file_of(const std::string& text) {
  const io::Bytes bytes = io::as_bytes(text);
  return io::MappedFile::of_memory("read", "file", {bytes.begin(), bytes.end()});
}
// Touches every byte of every element.
inline void use(const Tensor& x) {
  const io::HostBytes host(x);
  volatile unsigned sum = 0;
  for (const std::byte b : host.bytes) sum = sum + std::to_integer<unsigned>(b);
}
inline void use(const StateDict& state) {
  for (const auto& [name, x] : state) use(x);
}
// Elements that are repeated cost no bytes in a file: a tensor of them may be larger than memory.
inline void use(const TorchValue& value) {
  if (value.is(TorchValue::Kind::tensor) && value.as_tensor().numel() < 1 << 20) use(value.as_tensor());
  if (value.is(TorchValue::Kind::list) || value.is(TorchValue::Kind::tuple))
    for (const TorchValue& item : value.items()) use(item);
  if (value.is(TorchValue::Kind::dict))
    for (const auto& [key, item] : value.entries()) use(item);
}

inline void read_safetensors(const std::string& text) { use(io::read_safetensors(file_of(text))); }
inline void read_index(const std::string& text) { (void)io::parse_safetensors_index(*file_of(text)); }
inline void read_npy(const std::string& text) { use(io::read_npy({file_of(text), 0, text.size()}, "")); }
inline void read_npz(const std::string& text) { use(io::read_npz(file_of(text))); }
inline void read_gzip(const std::string& text) { (void)io::gunzip(io::as_bytes(text), size_t(1) << 24); }
inline void read_inflate(const std::string& text) {
  (void)io::inflate({"read", "file"}, io::as_bytes(text), size_t(1) << 24);
}
inline void read_torch(const std::string& text) { use(io::read_torch_value(file_of(text))); }
inline void read_checkpoint(const std::string& text) { use(io::read_checkpoint(file_of(text)).model); }

inline std::string pickle_of(const std::string& path) {
  const io::ZipArchive zip(io::MappedFile::open("read", path));
  for (const io::ZipMember& member : zip.members())
    if (member.name.ends_with("/data.pkl")) return std::string(io::as_text(zip.read(member).bytes()));
  return "";
}
inline void read_pickle(const std::string& text) {
  const io::FileContext context{"read", "file"};
  use(io::unpickle(context, io::as_bytes(text),
                   [](const io::PickledTensor& t) { return zeros({}, {.dtype = t.dtype}); }));
}
inline void read_checkpoint_state(const std::string& text) {
  const io::FileContext context{"read", "file"};
  (void)io::read_checkpoint_state(context, text, {{"model.w", zeros({3})}});
}

// For libFuzzer: an Error is a good answer, any other exception ends the run.
inline int one_input(void (*read)(const std::string&), const uint8_t* data, size_t size) {
  static const bool limited = (memory::set_limit(int64_t(256) << 20), true);
  (void)limited;
  try {
    read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error&) {
    return 0;
  }
  return 0;
}

}  // namespace volta::fuzz
