// Tensor: a cheap handle to typed, shaped, possibly shared memory, and to the graph that made it.
#pragma once
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/choice.h>
#include <volta/device.h>
#include <volta/error.h>
#include <volta/given.h>
#include <volta/intrusive_ptr.h>
#include <volta/operand.h>
#include <volta/shape.h>

namespace volta {

struct TensorImpl;
class Tensor;
class Indexed;
class MaybeTensor;
class RowIterator;
class Generator;
void retain(TensorImpl*) noexcept;
void release(TensorImpl*) noexcept;

// How a new tensor is made: zeros({2, 3}, {.dtype = bf16, .device = "cuda"}).
struct Options {
  std::optional<DType> dtype = {};
  std::optional<Device> device = {};  // default_device(), or for functions named …_like that of their tensor
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
enum class PadMode { constant, reflect, replicate, circular };
constexpr std::array<std::string_view, 4> choice_names(PadMode) {
  return {"constant", "reflect", "replicate", "circular"};
}
struct PadOptions {
  Choice<PadMode> mode = PadMode::constant;
  double value = 0;
};
// Fused into the product.
enum class LinearActivation { none, relu, gelu, gelu_tanh, silu, tanh, sigmoid };
constexpr std::array<std::string_view, 7> choice_names(LinearActivation) {
  return {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"};
}
struct LinearOptions {
  Choice<LinearActivation> activation = LinearActivation::none;
};
enum class GeluApproximation { none, tanh };
constexpr std::array<std::string_view, 2> choice_names(GeluApproximation) { return {"none", "tanh"}; }
struct GELUOptions {
  Choice<GeluApproximation> approximate = GeluApproximation::none;
};
enum class ScatterReduce { sum, prod, mean, amax, amin };
constexpr std::array<std::string_view, 5> choice_names(ScatterReduce) {
  return {"sum", "prod", "mean", "amax", "amin"};
}
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
enum class QuantileInterpolation : uint8_t { linear, lower, higher, nearest, midpoint };
constexpr std::array<std::string_view, 5> choice_names(QuantileInterpolation) {
  return {"linear", "lower", "higher", "nearest", "midpoint"};
}
struct QuantileOptions {
  Choice<QuantileInterpolation> interpolation = QuantileInterpolation::linear;
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

// In-place methods give the tensor itself; of a temporary, which would be gone with the line, a handle to it:
//   auto&& y = (x * 2).relu_();
class Tensor {
 public:
  Tensor() noexcept = default;  // holds nothing: defined() is false

  bool defined() const noexcept { return bool(impl_); }
  DType dtype() const;
  Device device() const;
  const Shape& shape() const&;
  Shape shape() && { return static_cast<const Tensor&>(*this).shape(); }
  int64_t size(int64_t axis) const;
  int64_t stride(int64_t axis) const;  // in elements
  const Shape& strides() const&;
  Shape strides() && { return static_cast<const Tensor&>(*this).strides(); }
  int64_t storage_offset() const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t nbytes() const;
  bool is_contiguous() const;
  bool is_floating_point() const { return is_floating(dtype()); }
  bool shares_storage(const Tensor& other) const;
  uint32_t version() const;  // counts in-place changes of the storage

  // Reading values. item: x.item<float>() of one element. data<T>: the address of the first element, T as stored.
  // A value that an integer type T does not hold is an Error; fractions are cut off.
  template <class T> T item() const {
    const Scalar value = item();
    if (!value.fits<T>()) refuse_item(value, dtype_of<T>());
    return value.as<T>();
  }
  Scalar item() const;
  template <class T> std::vector<T> to_vector() const {
    std::vector<T> values(count_for_host(sizeof(T)));
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
  Tensor& requires_grad_(bool on = true) &;
  Tensor requires_grad_(bool on = true) && { return std::move(requires_grad_(on)); }
  bool is_leaf() const;
  MaybeTensor grad() const;
  void retain_grad() const;  // a result keeps its gradient too, from the next backward on
  bool retains_grad() const;
  void set_grad(const Tensor& grad) const;
  void zero_grad() const;
  void backward(const BackwardOptions& options = {}) const;
  void backward(const Tensor& cotangent, const BackwardOptions& options = {}) const;
  [[nodiscard]] Tensor detach() const;  // the same memory, outside the graph
  Tensor& detach_() &;                  // leaves the graph itself; a view cannot
  Tensor detach_() && { return std::move(detach_()); }
  // Runs when the gradient of this tensor is known; a returned tensor replaces it. Gives a number for remove_hook.
  int register_hook(std::function<std::optional<Tensor>(const Tensor&)> hook) const;
  template <class F>  // that only looks: x.register_hook([](const Tensor& g) { std::cout << g; })
  requires std::is_void_v<std::invoke_result_t<F&, const Tensor&>>
  int register_hook(F hook) const {
    return register_hook([hook = detail::given(hook, "register_hook")](const Tensor& g) mutable {
      hook(g);
      return std::optional<Tensor>();
    });
  }
  void remove_hook(int hook) const;

  // Indexing: x[0], x[{slice(), -1}], x[{ellipsis, newaxis}], x[indices], x[mask]; assigning to it writes into x.
  [[nodiscard]] Indexed operator[](Int index) const;
  [[nodiscard]] Indexed operator[](const Tensor& index) const;
  [[nodiscard]] Indexed operator[](Slice index) const;
  [[nodiscard]] Indexed operator[](std::initializer_list<Index> indices) const;

  // for (Tensor row : x): x[0], x[1], … along the first axis.
  RowIterator begin() const;
  RowIterator end() const;

  // Changes in place, besides the in-place forms of the pointwise ops (add_, exp_, …).
  Tensor& operator+=(const Operand& other) &;
  Tensor& operator-=(const Operand& other) &;
  Tensor& operator*=(const Operand& other) &;
  Tensor& operator/=(const Operand& other) &;
  Tensor& operator%=(const Operand& other) &;
  Tensor& operator&=(const Operand& other) &;
  Tensor& operator|=(const Operand& other) &;
  Tensor& operator^=(const Operand& other) &;
  Tensor& operator<<=(const Operand& other) &;
  Tensor& operator>>=(const Operand& other) &;
  // Those of temporaries, as std::move(x) += 1, give a handle.
  Tensor operator+=(const Operand& other) && { return std::move(*this += other); }
  Tensor operator-=(const Operand& other) && { return std::move(*this -= other); }
  Tensor operator*=(const Operand& other) && { return std::move(*this *= other); }
  Tensor operator/=(const Operand& other) && { return std::move(*this /= other); }
  Tensor operator%=(const Operand& other) && { return std::move(*this %= other); }
  Tensor operator&=(const Operand& other) && { return std::move(*this &= other); }
  Tensor operator|=(const Operand& other) && { return std::move(*this |= other); }
  Tensor operator^=(const Operand& other) && { return std::move(*this ^= other); }
  Tensor operator<<=(const Operand& other) && { return std::move(*this <<= other); }
  Tensor operator>>=(const Operand& other) && { return std::move(*this >>= other); }
  Tensor& copy_(const Tensor& source) &;  // broadcasts and converts
  Tensor copy_(const Tensor& source) && { return std::move(copy_(source)); }
  Tensor& fill_(const Operand& value) &;  // a number or a 0-d tensor
  Tensor fill_(const Operand& value) && { return std::move(fill_(value)); }
  Tensor& add_(const Operand& other, Scalar alpha) &;  // x += alpha * other
  Tensor add_(const Operand& other, Scalar alpha) && { return std::move(add_(other, alpha)); }
  Tensor& sub_(const Operand& other, Scalar alpha) &;
  Tensor sub_(const Operand& other, Scalar alpha) && { return std::move(sub_(other, alpha)); }
  Tensor& addcmul_(const Tensor& a, const Tensor& b, double value = 1) &;
  Tensor addcmul_(const Tensor& a, const Tensor& b, double value = 1) && { return std::move(addcmul_(a, b, value)); }
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, double value = 1) &;
  Tensor addcdiv_(const Tensor& a, const Tensor& b, double value = 1) && { return std::move(addcdiv_(a, b, value)); }
  Tensor& clamp_(const Operand& min) &;
  Tensor clamp_(const Operand& min) && { return std::move(clamp_(min)); }
  Tensor& clamp_(const Bounds& bounds) &;
  Tensor clamp_(const Bounds& bounds) && { return std::move(clamp_(bounds)); }
  Tensor& clip_(const Operand& min) & { return clamp_(min); }
  Tensor clip_(const Operand& min) && { return std::move(clip_(min)); }
  Tensor& clip_(const Bounds& bounds) & { return clamp_(bounds); }
  Tensor clip_(const Bounds& bounds) && { return std::move(clip_(bounds)); }
  Tensor& clip_(const Operand& min, const Operand& max) & { return clamp_(min, max); }
  Tensor clip_(const Operand& min, const Operand& max) && { return std::move(clip_(min, max)); }
  Tensor& zero_() &;
  Tensor zero_() && { return std::move(zero_()); }
  Tensor& tril_(int64_t diagonal = 0) &;
  Tensor tril_(int64_t diagonal = 0) && { return std::move(tril_(diagonal)); }
  Tensor& triu_(int64_t diagonal = 0) &;
  Tensor triu_(int64_t diagonal = 0) && { return std::move(triu_(diagonal)); }
  Tensor& fill_diagonal_(const Operand& value, bool wrap = false) &;  // wrap: again after each square of a tall matrix
  Tensor fill_diagonal_(const Operand& value, bool wrap = false) && { return std::move(fill_diagonal_(value, wrap)); }
  Tensor& masked_fill_(const Tensor& mask, const Operand& value) &;
  Tensor masked_fill_(const Tensor& mask, const Operand& value) && { return std::move(masked_fill_(mask, value)); }
  Tensor& uniform_(double low = 0, double high = 1, Generator* generator = nullptr) &;
  Tensor uniform_(double low = 0, double high = 1, Generator* generator = nullptr) && {
    return std::move(uniform_(low, high, generator));
  }
  Tensor& normal_(double mean = 0, double deviation = 1, Generator* generator = nullptr) &;
  Tensor normal_(double mean = 0, double deviation = 1, Generator* generator = nullptr) && {
    return std::move(normal_(mean, deviation, generator));
  }
  Tensor& exponential_(double rate = 1, Generator* generator = nullptr) &;
  Tensor exponential_(double rate = 1, Generator* generator = nullptr) && {
    return std::move(exponential_(rate, generator));
  }
  Tensor& bernoulli_(double p = 0.5, Generator* generator = nullptr) &;
  Tensor bernoulli_(double p = 0.5, Generator* generator = nullptr) && { return std::move(bernoulli_(p, generator)); }
  Tensor& bernoulli_(const Tensor& p, Generator* generator = nullptr) &;
  Tensor bernoulli_(const Tensor& p, Generator* generator = nullptr) && { return std::move(bernoulli_(p, generator)); }
  Tensor& geometric_(double p, Generator* generator = nullptr) &;  // how many trials until the first success
  Tensor geometric_(double p, Generator* generator = nullptr) && { return std::move(geometric_(p, generator)); }
  Tensor& cauchy_(double median = 0, double sigma = 1, Generator* generator = nullptr) &;
  Tensor cauchy_(double median = 0, double sigma = 1, Generator* generator = nullptr) && {
    return std::move(cauchy_(median, sigma, generator));
  }
  Tensor& log_normal_(double mean = 1, double deviation = 2, Generator* generator = nullptr) &;
  Tensor log_normal_(double mean = 1, double deviation = 2, Generator* generator = nullptr) && {
    return std::move(log_normal_(mean, deviation, generator));
  }
  Tensor& scatter_(int64_t dim, const Tensor& index, const Operand& src) &;
  Tensor scatter_(int64_t dim, const Tensor& index, const Operand& src) && {
    return std::move(scatter_(dim, index, src));
  }
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) &;
  Tensor scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) && {
    return std::move(scatter_add_(dim, index, src));
  }
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, const Choice<ScatterReduce>& reduce,
                          bool include_self = true) &;
  Tensor scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, const Choice<ScatterReduce>& reduce,
                         bool include_self = true) && {
    return std::move(scatter_reduce_(dim, index, src, reduce, include_self));
  }
  Tensor& index_reduce_(int64_t dim, const Tensor& index, const Tensor& source, const Choice<ScatterReduce>& reduce,
                        bool include_self = true) &;
  Tensor index_reduce_(int64_t dim, const Tensor& index, const Tensor& source, const Choice<ScatterReduce>& reduce,
                       bool include_self = true) && {
    return std::move(index_reduce_(dim, index, source, reduce, include_self));
  }
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1) &;
  Tensor index_add_(int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1) && {
    return std::move(index_add_(dim, index, source, alpha));
  }
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source) &;
  Tensor index_copy_(int64_t dim, const Tensor& index, const Tensor& source) && {
    return std::move(index_copy_(dim, index, source));
  }
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Operand& value) &;
  Tensor index_fill_(int64_t dim, const Tensor& index, const Operand& value) && {
    return std::move(index_fill_(dim, index, value));
  }
  Tensor& index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate = false) &;
  Tensor index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate = false) && {
    return std::move(index_put_(indices, values, accumulate));
  }
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source) &;
  Tensor masked_scatter_(const Tensor& mask, const Tensor& source) && {
    return std::move(masked_scatter_(mask, source));
  }

  [[nodiscard]] Tensor cpu() const { return to(Device()); }
  [[nodiscard]] Tensor cuda(int64_t index = 0) const { return to(Device(DeviceType::cuda, index)); }
  [[nodiscard]] Tensor bernoulli(Generator* generator = nullptr) const;  // of the probabilities that it holds
  [[nodiscard]] Tensor multinomial(Int samples, bool replacement = false, Generator* generator = nullptr) const;
  [[nodiscard]] Tensor std(const Axes& dim = {}, const VarOptions& options = {}) const;
  [[nodiscard]] Tensor cov() const;
  [[nodiscard]] Tensor cov(const CovOptions& options) const;
  std::string str() const;
  friend std::ostream& operator<<(std::ostream& out, const Tensor& x);

  // New tensors of this one's dtype and device, unless options say otherwise: x.new_zeros({2, 3}).
  [[nodiscard]] Tensor new_empty(const Shape& shape, const Options& options = {}) const;
  [[nodiscard]] Tensor new_zeros(const Shape& shape, const Options& options = {}) const;
  [[nodiscard]] Tensor new_ones(const Shape& shape, const Options& options = {}) const;
  [[nodiscard]] Tensor new_full(const Shape& shape, Scalar value, const Options& options = {}) const;

#include <volta/methods.h>  // every op as a method, generated from the same list as the functions

  // For the framework itself.
  explicit Tensor(detail::IntrusivePtr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  TensorImpl& impl() const { return *impl_; }
  TensorImpl* impl_pointer() const noexcept { return impl_.get(); }
  const Tensor& checked(const char* op) const {  // throws if undefined
    if (!impl_) refuse_undefined(op);
    return *this;
  }

 private:
  [[noreturn]] static void refuse_undefined(const char* op);
  [[noreturn]] static void refuse_item(const Scalar& value, DType as);
  void* data(DType as) const;
  size_t count_for_host(size_t bytes_each) const;  // throws where the host has no memory for all elements
  void copy_to(void* out, DType as) const;
  detail::IntrusivePtr<TensorImpl> impl_;
};

// A tensor that may be absent, as x.grad() before any backward: `if (x.grad())` asks; * and -> throw an Error of kind
// autograd where there is none.
class [[nodiscard]] MaybeTensor {
 public:
  MaybeTensor() = default;
  MaybeTensor(std::nullopt_t) {}
  MaybeTensor(Tensor value) : value_(std::move(value)) {}  // an undefined tensor is an absent one

  bool has_value() const noexcept { return value_.defined(); }
  bool defined() const noexcept { return has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  Tensor& value() & { return const_cast<Tensor&>(present()); }
  const Tensor& value() const& { return present(); }
  Tensor value() && { return std::move(value()); }
  Tensor& operator*() & { return value(); }
  const Tensor& operator*() const& { return value(); }
  Tensor operator*() && { return std::move(value()); }
  Tensor* operator->() { return &value(); }
  const Tensor* operator->() const { return &value(); }
  Tensor value_or(const Tensor& other) const { return has_value() ? value_ : other; }
  operator std::optional<Tensor>() const { return has_value() ? std::optional(value_) : std::nullopt; }
  friend bool operator==(const MaybeTensor& x, std::nullopt_t) noexcept { return !x.has_value(); }
  friend std::ostream& operator<<(std::ostream& out, const MaybeTensor& x);

 private:
  const Tensor& present() const {
    if (!has_value())
      throw Error(Error::Kind::autograd, "grad",
                  "there is no gradient: no backward pass has reached this tensor, or it is neither a leaf that "
                  "requires grad nor retains its gradient");
    return value_;
  }
  Tensor value_;
};

// Goes along the first axis of a tensor; what it points to are views.
class RowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Tensor;

  RowIterator(Tensor of, int64_t row) : of_(std::move(of)), row_(row) {}
  Tensor operator*() const { return of_.select(0, row_); }
  RowIterator& operator++() {
    ++row_;
    return *this;
  }
  RowIterator operator++(int) { return {of_, row_++}; }
  friend bool operator==(const RowIterator& a, const RowIterator& b) noexcept { return a.row_ == b.row_; }

 private:
  Tensor of_;
  int64_t row_;
};

struct Index {
  enum class Kind : uint8_t { integer, range, rest, fresh, tensor };
  template <detail::Whole T> Index(T i) : kind(Kind::integer), integer(Int(i)) {}
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
  void operator%=(const Operand& value) &&;
  void operator&=(const Operand& value) &&;
  void operator|=(const Operand& value) &&;
  void operator^=(const Operand& value) &&;
  void operator<<=(const Operand& value) &&;
  void operator>>=(const Operand& value) &&;
  // With a name it is a tensor like others: auto row = x[0]; row += 1 writes into x, as far as row is a view of it;
  // row = tanh(row) lets go of it.
  Indexed& operator=(const Tensor& value) & { return *this = Indexed(value, {}, {}); }
  Indexed& operator=(const Indexed&) & = default;
  Indexed& operator=(Indexed&&) & = default;
  Indexed& operator+=(const Operand& value) & { return Tensor::operator+=(value), *this; }
  Indexed& operator-=(const Operand& value) & { return Tensor::operator-=(value), *this; }
  Indexed& operator*=(const Operand& value) & { return Tensor::operator*=(value), *this; }
  Indexed& operator/=(const Operand& value) & { return Tensor::operator/=(value), *this; }
  Indexed& operator%=(const Operand& value) & { return Tensor::operator%=(value), *this; }
  Indexed& operator&=(const Operand& value) & { return Tensor::operator&=(value), *this; }
  Indexed& operator|=(const Operand& value) & { return Tensor::operator|=(value), *this; }
  Indexed& operator^=(const Operand& value) & { return Tensor::operator^=(value), *this; }
  Indexed& operator<<=(const Operand& value) & { return Tensor::operator<<=(value), *this; }
  Indexed& operator>>=(const Operand& value) & { return Tensor::operator>>=(value), *this; }

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

[[nodiscard]] Tensor operator+(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator-(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator*(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator/(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator%(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator-(const Tensor& x);
[[nodiscard]] Tensor operator==(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator!=(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator<(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator<=(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator>(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator>=(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator&(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator|(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator^(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator<<(const Operand& a, const Operand& b);  // of integers; std::cout << x prints
[[nodiscard]] Tensor operator>>(const Operand& a, const Operand& b);
[[nodiscard]] Tensor operator~(const Tensor& x);
[[nodiscard]] Tensor operator!(const Tensor& x);

}  // namespace volta
