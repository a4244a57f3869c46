// Tensor: a cheap handle to typed, shaped, possibly shared memory, and to the graph that made it.
#pragma once
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <volta/counted.h>
#include <volta/device.h>
#include <volta/error.h>
#include <volta/operand.h>
#include <volta/shape.h>

namespace volta {

struct TensorImpl;
struct Node;
class Tensor;
class Indexed;
class Generator;
void retain(TensorImpl*) noexcept;
void release(TensorImpl*) noexcept;

// How a new tensor is made: zeros({2, 3}, {.dtype = bf16, .device = "cuda"}).
struct Options {
  std::optional<DType> dtype = {};
  std::optional<Device> device = {};  // the CPU, or for functions named …_like the device of their tensor
  bool requires_grad = false;
  Generator* generator = nullptr;
};

// slice(begin, end, step) as in Python: slice() is the whole axis, slice({}, {}, -1) reverses it.
struct Slice {
  std::optional<int64_t> begin, end;
  int64_t step = 1;
};
inline Slice slice(std::optional<int64_t> begin = {}, std::optional<int64_t> end = {}, int64_t step = 1) {
  return {begin, end, step};
}
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis;
inline constexpr NewAxis newaxis;

struct Index;

struct BackwardOptions {
  bool retain_graph = false, create_graph = false;
};

// Results of ops with two outputs: auto [values, indices] = x.max(1).
struct ValuesIndices;

// Fields of options, in PyTorch's order.
struct VarOptions {
  double correction = 1;
  bool keepdim = false;
};
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
struct PadOptions {
  std::string mode = "constant";
  double value = 0;
};
struct LinearOptions {
  std::string activation = "none";  // none, relu, gelu, gelu_tanh, silu, tanh, sigmoid: fused into the product
};
struct UniqueResult;
struct UniqueOptions {
  bool sorted = true;  // they always are
  bool return_inverse = false, return_counts = false;
  std::optional<int64_t> dim = {};  // whole slices along it, where given
};
struct UniqueConsecutiveOptions {
  bool return_inverse = false, return_counts = false;
  std::optional<int64_t> dim = {};
};
struct QuantileOptions {
  std::string interpolation = "linear";  // or lower, higher, nearest, midpoint
};
struct IsinOptions {
  bool assume_unique = false;  // changes nothing but speed
  bool invert = false;
};
struct CovOptions;
struct TrapezoidOptions {
  double dx = 1;  // the distance of neighbours, where no places are given
  int64_t dim = -1;
};
struct MinMax;
struct VarMean;
struct StdMean;
struct SearchOptions {
  bool right = false;
};
struct HistogramResult;

class Tensor {
 public:
  Tensor() noexcept = default;  // holds nothing: defined() is false

  bool defined() const noexcept { return bool(impl_); }
  DType dtype() const;
  Device device() const;
  const Shape& shape() const;
  int64_t size(int64_t axis) const;
  int64_t stride(int64_t axis) const;  // in elements
  const Shape& strides() const;
  int64_t storage_offset() const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t nbytes() const;
  bool is_contiguous() const;
  bool shares_storage(const Tensor& other) const;
  uint32_t version() const;  // counts in-place changes of the storage

  // Reading values. item: x.item<float>() of one element. data<T>: the address of the first element, T as stored.
  template <class T> T item() const { return item().as<T>(); }
  Scalar item() const;
  template <class T> std::vector<T> to_vector() const {
    std::vector<T> values(size_t(checked("to_vector").numel()));
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<unsigned char> bytes(values.size());
      copy_to(bytes.data(), boolean);
      values.assign(bytes.begin(), bytes.end());
    } else {
      copy_to(values.data(), dtype_of<T>());
    }
    return values;
  }
  template <class T> T* data() const { return static_cast<T*>(data(dtype_of<T>())); }
  void* raw_data() const;  // of any dtype

  // Autograd.
  bool requires_grad() const;
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  std::optional<Tensor> grad() const;
  void set_grad(const Tensor& grad) const;
  void zero_grad() const;
  void backward(const BackwardOptions& options = {}) const;
  void backward(const Tensor& cotangent, const BackwardOptions& options = {}) const;
  Tensor detach() const;  // the same memory, outside the graph
  // Runs when the gradient of this tensor is known; a returned tensor replaces it. Gives a number for remove_hook.
  int register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const;
  void remove_hook(int hook) const;

  // Indexing: x[0], x[{slice(), -1}], x[{ellipsis, newaxis}], x[indices], x[mask]; assigning to it writes into x.
  Indexed operator[](int64_t index) const;
  Indexed operator[](const Tensor& index) const;
  Indexed operator[](Slice index) const;
  Indexed operator[](std::initializer_list<Index> indices) const;

  // Changes in place, besides the in-place forms of the pointwise ops (add_, exp_, …).
  Tensor& operator+=(const Operand& other);
  Tensor& operator-=(const Operand& other);
  Tensor& operator*=(const Operand& other);
  Tensor& operator/=(const Operand& other);
  Tensor& copy_(const Tensor& source);  // broadcasts and converts
  Tensor& fill_(const Operand& value);  // a number or a 0-d tensor
  Tensor& zero_();
  Tensor& masked_fill_(const Tensor& mask, const Operand& value);
  Tensor& uniform_(double low = 0, double high = 1, Generator* generator = nullptr);
  Tensor& normal_(double mean = 0, double deviation = 1, Generator* generator = nullptr);
  Tensor& exponential_(double rate = 1, Generator* generator = nullptr);
  Tensor& bernoulli_(double p = 0.5, Generator* generator = nullptr);
  Tensor& bernoulli_(const Tensor& p, Generator* generator = nullptr);
  Tensor& geometric_(double p, Generator* generator = nullptr);  // how many trials until the first success
  Tensor& cauchy_(double median = 0, double sigma = 1, Generator* generator = nullptr);
  Tensor& log_normal_(double mean = 1, double deviation = 2, Generator* generator = nullptr);
  Tensor& scatter_(int64_t dim, const Tensor& index, const Operand& src);
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src);
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, const std::string& reduce,
                          bool include_self = true);
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1);
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Operand& value);
  Tensor& index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate = false);
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);

  Tensor std(const Axes& dim = {}, const VarOptions& options = {}) const;
  Tensor cov() const;
  Tensor cov(const CovOptions& options) const;
  std::string str() const;
  friend std::ostream& operator<<(std::ostream& out, const Tensor& x);

#include <volta/methods.h>  // every op as a method, generated from the same list as the functions

  // For the framework itself.
  explicit Tensor(Ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  TensorImpl& impl() const { return *impl_; }
  TensorImpl* impl_pointer() const noexcept { return impl_.get(); }
  const Tensor& checked(const char* op) const {  // throws if undefined
    if (!impl_) refuse_undefined(op);
    return *this;
  }

 private:
  [[noreturn]] static void refuse_undefined(const char* op);
  void* data(DType as) const;
  void copy_to(void* out, DType as) const;
  Ptr<TensorImpl> impl_;
};

struct Index {
  enum class Kind : uint8_t { integer, range, rest, fresh, tensor };
  template <std::integral T> Index(T i) : kind(Kind::integer), integer(int64_t(i)) {}
  Index(Slice s) : kind(Kind::range), range(s) {}
  Index(Ellipsis) : kind(Kind::rest) {}
  Index(NewAxis) : kind(Kind::fresh) {}
  Index(const Tensor& t) : kind(Kind::tensor), tensor(t) {}

  Kind kind;
  int64_t integer = 0;
  Slice range{};
  Tensor tensor;
};

// What x[...] gives: a tensor (a view where the index allows one). Assigning to it while it is a temporary writes into x.
class Indexed : public Tensor {
 public:
  Indexed(Tensor value, Tensor base, std::vector<Index> indices)
      : Tensor(std::move(value)), base_(std::move(base)), indices_(std::move(indices)) {}
  Indexed(const Indexed&) = default;
  Indexed(Indexed&&) = default;
  ~Indexed() = default;
  void operator=(const Operand& value) &&;
  void operator=(const Indexed& value) && { std::move(*this) = Operand(value); }
  void operator+=(const Operand& value) &&;
  void operator-=(const Operand& value) &&;
  void operator*=(const Operand& value) &&;
  void operator/=(const Operand& value) &&;

 private:
  Tensor base_;
  std::vector<Index> indices_;  // empty when the value is a view of the base
};

struct ValuesIndices {
  Tensor values, indices;
};
struct UniqueResult {
  Tensor values, inverse, counts;
};
struct HistogramResult {
  Tensor counts, edges;
};
struct MinMax {
  Tensor min, max;
};
struct VarMean {
  Tensor var, mean;
};
struct StdMean {
  Tensor std, mean;
};
struct CovOptions {
  int64_t correction = 1;
  Tensor fweights = {}, aweights = {};  // how often each observation counts, and how much
};

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator%(const Operand& a, const Operand& b);
Tensor operator-(const Tensor& x);
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Tensor& x);
Tensor operator!(const Tensor& x);

}  // namespace volta
