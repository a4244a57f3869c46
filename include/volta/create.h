// Making tensors: from data, filled, ranges, random.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include <volta/random.h>
#include <volta/tensor.h>

namespace volta {

DType default_dtype();
void set_default_dtype(DType dtype);  // of all threads: a floating one; f32 at first
Device default_device();              // where tensors are made if nothing else is said: the CPU at first

// The default float of this thread, while the guard lives: { DefaultDtype wide(f64); nn::Linear fc(4, 2); }
class [[nodiscard]] DefaultDtype {
 public:
  [[nodiscard]] explicit DefaultDtype(DType dtype);
  ~DefaultDtype();
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  std::optional<DType> before_;
};
// Where this thread makes tensors, while the guard lives, layers among them, without a copy from the host; what options say
// counts before it: { DefaultDevice on("cpu"); nn::Linear fc(4, 2); }
class [[nodiscard]] DefaultDevice {
 public:
  [[nodiscard]] explicit DefaultDevice(Device device);
  ~DefaultDevice();
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  Device before_;
};

// Nested braces of numbers: {{1, 2}, {3, 4}}.
class Data {
 public:
  template <class T>
  requires std::integral<T> || std::floating_point<T> Data(T value) : value_(value) {}
  Data(std::initializer_list<Data> list) : list_(list), is_list_(true) {}

  bool is_list() const { return is_list_; }
  const std::vector<Data>& list() const { return list_; }
  const Scalar& value() const { return value_; }

 private:
  Scalar value_;
  std::vector<Data> list_;
  bool is_list_ = false;
};

// tensor({{1, 2}, {3, 4}}): whole numbers are i64, decimals the default float, truths boolean; or as options say.
[[nodiscard]] Tensor tensor(const Data& data, const Options& options = {});
// tensor<double>({0.5, 1}): the element type as given.
template <class T> [[nodiscard]] Tensor tensor(const Data& data, Options options = {}) {
  options.dtype = dtype_of<T>();
  return tensor(data, options);
}
[[nodiscard]] Tensor tensor_from(const void* data, DType dtype, const Shape& shape, const Options& options);
namespace detail {
Tensor tensor_of_truths(const std::vector<bool>& values, const Shape& shape, const Options& options);
template <class V>
concept ListOfElements = requires(const V& v) {
  v.data();
  v.size();
}
&&!std::is_same_v<V, std::vector<bool>>;
}  // namespace detail
// tensor(std::vector{1.f, 2.f}), tensor(std::span(v), {2, 3}): a copy, of the vector's element type.
template <detail::ListOfElements V>
[[nodiscard]] Tensor tensor(const V& values, const Shape& shape, const Options& options = {}) {
  if (int64_t(values.size()) != shape.numel())
    throw Error(Error::Kind::shape, "tensor",
                std::to_string(values.size()) + " values do not fill shape " + shape.str());
  return tensor_from(values.data(), dtype_of<std::remove_cv_t<typename V::value_type>>(), shape, options);
}
template <detail::ListOfElements V> [[nodiscard]] Tensor tensor(const V& values) {
  return tensor(values, Shape{values.size()});
}
template <std::same_as<std::vector<bool>> V>
[[nodiscard]] Tensor tensor(const V& values, const Shape& shape, const Options& options = {}) {
  return detail::tensor_of_truths(values, shape, options);
}
template <std::same_as<std::vector<bool>> V> [[nodiscard]] Tensor tensor(const V& values) {
  return detail::tensor_of_truths(values, Shape{values.size()}, {});
}
// Memory owned by someone else, used as it is; `release` is called when the last tensor lets go of it.
[[nodiscard]] Tensor from_blob(void* data, const Shape& shape, const Options& options = {},
                               std::function<void()> release = {});

[[nodiscard]] Tensor empty(const Shape& shape, const Options& options = {});  // uninitialised
// For programs that also say using namespace std, whose empty asks whether a list is.
template <std::integral T> [[nodiscard]] Tensor empty(std::initializer_list<T> shape) { return empty(Shape(shape)); }
[[nodiscard]] Tensor zeros(const Shape& shape, const Options& options = {});
[[nodiscard]] Tensor ones(const Shape& shape, const Options& options = {});
[[nodiscard]] Tensor full(const Shape& shape, Scalar value, const Options& options = {});
[[nodiscard]] Tensor empty_like(const Tensor& x,
                                Options options = {});  // dtype and device of x unless options say otherwise
[[nodiscard]] Tensor zeros_like(const Tensor& x, Options options = {});
[[nodiscard]] Tensor ones_like(const Tensor& x, Options options = {});
[[nodiscard]] Tensor full_like(const Tensor& x, Scalar value, Options options = {});
[[nodiscard]] Tensor arange(Scalar end, const Options& options = {});  // arange(5): 0, 1, 2, 3, 4
[[nodiscard]] Tensor arange(Scalar start, Scalar end, const Options& options);
[[nodiscard]] Tensor arange(Scalar start, Scalar end, Scalar step = 1, const Options& options = {});
[[nodiscard]] Tensor linspace(Scalar start, Scalar end, Int steps, const Options& options = {});
[[nodiscard]] Tensor logspace(double start, double end, Int steps, double base = 10, const Options& options = {});
[[nodiscard]] Tensor eye(Int n, std::optional<Int> m = {}, const Options& options = {});
[[nodiscard]] Tensor tri(Int n, std::optional<Int> m = {}, int64_t k = 0,
                         const Options& options = {});  // ones below the diagonal
[[nodiscard]] Tensor tril_indices(Int row, Int col, int64_t offset = 0, const Options& options = {});  // [2, n], i64
[[nodiscard]] Tensor triu_indices(Int row, Int col, int64_t offset = 0, const Options& options = {});
enum class MeshIndexing { ij, xy };
constexpr std::array<std::string_view, 2> choice_names(MeshIndexing) { return {"ij", "xy"}; }
[[nodiscard]] std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes,
                                           const Choice<MeshIndexing>& indexing = MeshIndexing::ij);

[[nodiscard]] Tensor rand(const Shape& shape, const Options& options = {});   // uniform on [0, 1)
[[nodiscard]] Tensor randn(const Shape& shape, const Options& options = {});  // standard normal
[[nodiscard]] Tensor randint(Int low, Int high, const Shape& shape,
                             const Options& options = {});                                // low <= x < high, i64
[[nodiscard]] Tensor randint(Int high, const Shape& shape, const Options& options = {});  // from 0 on
[[nodiscard]] Tensor randint_like(const Tensor& x, Int high, Options options = {});
[[nodiscard]] Tensor randint_like(const Tensor& x, Int low, Int high, Options options = {});
[[nodiscard]] Tensor rand_like(const Tensor& x, Options options = {});
[[nodiscard]] Tensor randn_like(const Tensor& x, Options options = {});
[[nodiscard]] Tensor uniform(const Shape& shape, double low, double high, const Options& options = {});
[[nodiscard]] Tensor normal(const Shape& shape, double mean, double std, const Options& options = {});
[[nodiscard]] Tensor truncated_normal(const Shape& shape, double mean, double std, double low, double high,
                                      const Options& options = {});
[[nodiscard]] Tensor bernoulli(const Tensor& probability,
                               Generator* generator = nullptr);     // 0 or 1, of the probability's dtype
[[nodiscard]] Tensor randperm(Int n, const Options& options = {});  // a random order of 0 … n-1
[[nodiscard]] Tensor multinomial(const Tensor& weights, Int samples, bool replacement = false,
                                 Generator* generator = nullptr);
[[nodiscard]] Tensor poisson(const Tensor& rate, Generator* generator = nullptr);  // of the rate's dtype
// Samples of PyTorch's distributions Gamma, Beta and Dirichlet; parameters broadcast, and take no gradient.
[[nodiscard]] Tensor sample_gamma(const Tensor& concentration, const Operand& rate = 1, Generator* generator = nullptr);
[[nodiscard]] Tensor sample_beta(const Tensor& concentration1, const Tensor& concentration0,
                                 Generator* generator = nullptr);
[[nodiscard]] Tensor sample_dirichlet(const Tensor& concentration,
                                      Generator* generator = nullptr);  // rows along the last axis add up to 1

}  // namespace volta
