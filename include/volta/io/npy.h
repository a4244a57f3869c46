// NumPy's files: one array (.npy) or several by name (.npz).
#pragma once
#include <string>
#include <string_view>

#include <volta/nn/model.h>

namespace volta {

// Tensor x = read_npy("x.npy"): any byte order, in C or Fortran order; what lies in the file as a tensor does is not copied.
[[nodiscard]] Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const Tensor& x);  // write_npy("x.npy", x); bf16 has no counterpart in NumPy

// The same in memory, as servers exchange arrays; messages call the bytes `name`: parse_npy(body, "the request").
[[nodiscard]] Tensor parse_npy(std::string_view bytes, const std::string& name = "the data");
[[nodiscard]] std::string npy_bytes(const Tensor& x);

// StateDict arrays = read_npz("arrays.npz"): of numpy.savez and numpy.savez_compressed.
[[nodiscard]] StateDict read_npz(const std::string& path);
void write_npz(const std::string& path, const StateDict& state);  // write_npz("net.npz", state_dict(net)), uncompressed

}  // namespace volta
