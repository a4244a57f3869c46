// Readers of IDX and of CIFAR's binary files.
#include <volta/data/sets.h>

#include <algorithm>
#include <filesystem>

#include <volta/data/functional.h>
#include <volta/ops.h>

#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "data/file.h"

namespace volta::data {
namespace {

DType idx_dtype(uint8_t code, const std::string& name) {
  switch (code) {
    case 0x08: return u8;
    case 0x09: return i8;
    case 0x0b: return i16;
    case 0x0c: return i32;
    case 0x0d: return f32;
    case 0x0e: return f64;
    default: throw_error(ErrorKind::io, "read_idx", name, " says type ", code, ", which IDX does not know");
  }
}

// Big-endian numbers in a tensor's memory become those of this machine.
void to_native(const Tensor& x) {
  const int64_t size = size_of(x.dtype());
  char* bytes = static_cast<char*>(address(x));
  if (size > 1)
    for (int64_t i = 0; i < x.numel(); ++i) std::reverse(bytes + i * size, bytes + (i + 1) * size);
}

std::string file_in(const std::string& folder, std::initializer_list<const char*> names, const char* op) {
  for (const char* name : names) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    for (const char* ending : {"", ".gz"}) {
      std::error_code none;
      if (std::filesystem::exists(path.string() + ending, none)) return path.string() + ending;
    }
  }
  throw_error(ErrorKind::io, op, "there is no ", *names.begin(), " in ", folder);
}

Tensor as_dtype(const Tensor& images, DType dtype, const char* op) {
  require(dtype == u8 || is_floating(dtype), ErrorKind::dtype, op, "images are u8 or floating, not ", dtype);
  return dtype == u8 ? images : images.to(dtype == f64 ? f64 : f32).div_(255).to(dtype);
}

LabelledImages idx_set(const std::string& images_file, const std::string& labels_file, DType dtype, const char* op) {
  const Tensor images = read_idx(images_file), labels = read_idx(labels_file);
  require(images.dim() == 3 && images.dtype() == u8, ErrorKind::io, op, images_file, " holds ", images.dtype(),
          " of shape ", images, " and not images of bytes [n, height, width]");
  require(labels.dim() == 1 && labels.dtype() == u8, ErrorKind::io, op, labels_file, " holds ", labels.dtype(),
          " of shape ", labels, " and not labels of bytes [n]");
  require(images.size(0) == labels.size(0), ErrorKind::io, op, images_file, " holds ", images.size(0), " images and ",
          labels_file, " ", labels.size(0), " labels");
  return LabelledImages(as_dtype(images.unsqueeze(1), dtype, op), labels.to(i64));
}

// The folder itself, or the one that unpacking makes in it.
std::string cifar_folder(const std::string& folder, const char* usual) {
  std::error_code none;
  const auto inner = std::filesystem::path(folder) / usual;
  return std::filesystem::is_directory(inner, none) ? inner.string() : folder;
}

LabelledImages cifar_files(const std::string& folder, const std::vector<std::string>& names, int label_bytes, int label,
                           int classes, DType dtype, const char* op) {
  std::vector<Tensor> images, labels;
  for (const std::string& name : names) {
    const std::string path = file_in(folder, {name.c_str()}, op);
    const auto part = parse_cifar(read_file(path, op), label_bytes, label, classes, path);
    images.push_back(part.tensors()[0]);
    labels.push_back(part.tensors()[1]);
  }
  return LabelledImages(as_dtype(cat(images), dtype, op), cat(labels));
}

}  // namespace

Tensor parse_idx(std::string_view bytes, const std::string& name) {
  constexpr const char* op = "read_idx";
  Bytes in(bytes, name, op);
  const std::string_view magic = in.take(4);
  require(magic[0] == 0 && magic[1] == 0, ErrorKind::io, op, name,
          " is not an IDX file: it does not begin with two zeros");
  const DType dtype = idx_dtype(uint8_t(magic[2]), name);
  const int rank = uint8_t(magic[3]);
  require(rank <= Shape::max_rank, ErrorKind::io, op, name, " has ", rank, " axes; at most ", int(Shape::max_rank),
          " are read");
  Shape shape;
  Checked count = size_of(dtype);
  for (int i = 0; i < rank; ++i) {
    shape.push_back(in.big_endian_32());
    count *= shape.back();
  }
  require(count.fits() && count.value(op) == int64_t(in.left()), ErrorKind::io, op, name, " says ", dtype, " of shape ",
          shape, ", but ", in.left(), " bytes follow the header");
  const Tensor x = allocate(shape, dtype, Device(), op);
  if (in.left() > 0) std::memcpy(address(x), in.take(in.left()).data(), size_t(x.nbytes()));
  to_native(x);
  return x;
}

Tensor read_idx(const std::string& path) { return parse_idx(read_file(path, "read_idx"), path); }

LabelledImages mnist(const std::string& folder, const ImageSetOptions& options) {
  constexpr const char* op = "mnist";
  const bool train = options.train;
  const std::string images = train ? file_in(folder, {"train-images-idx3-ubyte", "train-images.idx3-ubyte"}, op)
                                   : file_in(folder, {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"}, op);
  const std::string labels = train ? file_in(folder, {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"}, op)
                                   : file_in(folder, {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"}, op);
  return idx_set(images, labels, options.dtype, op);
}

LabelledImages digits(const std::string& folder, const ImageSetOptions& options) {
  constexpr const char* op = "digits";
  const char *images = options.train ? "train-images.idx" : "test-images.idx",
             *labels = options.train ? "train-labels.idx" : "test-labels.idx";
  return idx_set(file_in(folder, {images}, op), file_in(folder, {labels}, op), options.dtype, op);
}

LabelledImages parse_cifar(std::string_view bytes, int label_bytes, int label, int classes, const std::string& name) {
  constexpr const char* op = "read_cifar";
  require(label_bytes >= 1 && label >= 0 && label < label_bytes && label_bytes <= 8, ErrorKind::argument, op, "label ",
          label, " of ", label_bytes);
  const size_t pixels = 3 * 32 * 32, record = size_t(label_bytes) + pixels, n = bytes.size() / record;
  require(bytes.size() % record == 0, ErrorKind::io, op, name, " has ", bytes.size(),
          " bytes, which are not whole records of ", record);
  const Tensor images = allocate({n, 3, 32, 32}, u8, Device(), op), labels = allocate({n}, i64, Device(), op);
  for (size_t i = 0; i < n; ++i) {
    const char* from = bytes.data() + i * record;
    const int value = uint8_t(from[label]);
    require(value < classes, ErrorKind::io, op, name, ": record ", i, " has label ", value, ", of ", classes,
            " classes");
    static_cast<int64_t*>(address(labels))[i] = value;
    std::memcpy(static_cast<char*>(address(images)) + i * pixels, from + label_bytes, pixels);
  }
  return LabelledImages(images, labels);
}

LabelledImages cifar10(const std::string& folder, const ImageSetOptions& options) {
  std::vector<std::string> names{"test_batch.bin"};
  if (options.train) {
    names.clear();
    for (int i = 1; i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  }
  return cifar_files(cifar_folder(folder, "cifar-10-batches-bin"), names, 1, 0, 10, options.dtype, "cifar10");
}

LabelledImages cifar100(const std::string& folder, const Cifar100Options& options) {
  const std::vector<std::string> names{options.train ? "train.bin" : "test.bin"};
  return cifar_files(cifar_folder(folder, "cifar-100-binary"), names, 2, options.coarse ? 0 : 1,
                     options.coarse ? 20 : 100, options.dtype, "cifar100");
}

}  // namespace volta::data
