// Well-known data sets as they are published: MNIST and its kin in IDX files, CIFAR in binary files, and our digits.
#pragma once
#include <string>

#include <volta/data/dataset.h>
#include <volta/dtype.h>

namespace volta::data {

// An IDX file of any dtype and rank, as MNIST is published: read_idx("train-images-idx3-ubyte") is u8 [60000, 28, 28].
[[nodiscard]] Tensor read_idx(const std::string& path);
// The same of bytes in memory; messages call them `name`.
[[nodiscard]] Tensor parse_idx(std::string_view bytes, const std::string& name = "the data");

using LabelledImages = TensorDataset<2>;  // images [n, channels, height, width] and labels [n], i64

struct ImageSetOptions {
  bool train = true;
  DType dtype = f32;  // floating: from 0 to 1; u8: as stored
};
// MNIST, FashionMNIST or KMNIST from its four files: mnist("data/mnist", {.train = false}).
[[nodiscard]] LabelledImages mnist(const std::string& folder, const ImageSetOptions& options = {});
// The handwritten digits that ship with Volta: digits("data/digits").
[[nodiscard]] LabelledImages digits(const std::string& folder, const ImageSetOptions& options = {});
// The binary version: cifar10("cifar-10-batches-bin").
[[nodiscard]] LabelledImages cifar10(const std::string& folder, const ImageSetOptions& options = {});
struct Cifar100Options {
  bool train = true;
  DType dtype = f32;
  bool coarse = false;  // the 20 superclasses as labels
};
[[nodiscard]] LabelledImages cifar100(const std::string& folder, const Cifar100Options& options = {});
// Records of a CIFAR file in memory: so many label bytes, of which the one numbered `label` counts, then 3 x 32 x 32.
[[nodiscard]] LabelledImages parse_cifar(std::string_view bytes, int label_bytes, int label, int classes,
                                         const std::string& name = "the data");

}  // namespace volta::data
