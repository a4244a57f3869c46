// Shape: a small inline list of sizes (or strides), and Axes: the axes an op works along.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace volta {

namespace detail {
// Numbers, not truths: x.var(false) must not mean the first axis.
template <class T>
concept Whole = std::integral<T> && !std::same_as<T, bool>;
}  // namespace detail

// A whole number of any integer type, as sizes and counts are given: nn::Linear(values.size(), 2). One beyond 63 bits
// becomes the largest number, which every check of a size refuses.
class Int {
 public:
  template <detail::Whole T> constexpr Int(T number) : number_(int64_t(number)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t))
      if (number_ < 0) number_ = INT64_MAX;
  }
  constexpr operator int64_t() const { return number_; }

 private:
  int64_t number_;
};

namespace detail {

// Vectors, arrays and spans of integers; not texts, nor truths.
template <class List>
concept ListOfIntegers = requires(const List& list) {
  { *list.begin() } -> std::convertible_to<int64_t>;
  { list.size() } -> std::convertible_to<size_t>;
  requires Whole<typename List::value_type> && !std::same_as<typename List::value_type, char>;
};

}  // namespace detail

// Sizes of the axes, outermost first: Shape{2, 3}. Lives inline: no op allocates to describe a tensor.
class Shape {
 public:
  static constexpr int max_rank = 12;

  constexpr Shape() = default;
  Shape(std::initializer_list<Int> sizes);
  template <detail::ListOfIntegers List> Shape(const List& sizes) {
    for (const auto size : sizes) push_back(Int(size));
  }
  explicit Shape(std::span<const int64_t> sizes);
  Shape(const Shape& other) noexcept { assign(other.sizes_, other.rank_); }
  Shape& operator=(const Shape& other) noexcept {
    if (this != &other) assign(other.sizes_, other.rank_);
    return *this;
  }
  static Shape filled(int rank, int64_t value);

  int size() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  // Negative axes count from the end; others that the shape has not are an Error, as is the last of none.
  template <detail::Whole T> int64_t& operator[](T axis) { return sizes_[place(Int(axis))]; }
  template <detail::Whole T> int64_t operator[](T axis) const { return sizes_[place(Int(axis))]; }
  int64_t back() const { return sizes_[place(-1)]; }
  int64_t* begin() noexcept { return sizes_; }
  int64_t* end() noexcept { return sizes_ + rank_; }
  const int64_t* begin() const noexcept { return sizes_; }
  const int64_t* end() const noexcept { return sizes_ + rank_; }

  void push_back(int64_t size);
  void insert(int axis, int64_t size);  // before the axis; at the end where it is the number of axes
  void erase(int axis);
  void resize(int rank);  // new axes have size 0

  int64_t numel() const noexcept;  // the shapes of tensors never overflow: that is checked when one is made
  std::string str() const;         // [2, 3]

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  int64_t place(int64_t axis) const { return uint64_t(axis) < uint64_t(rank_) ? axis : place_from_end(axis); }
  int64_t place_from_end(int64_t axis) const;  // or throws
  static void make_room(size_t rank) {
    if (rank > size_t(max_rank)) refuse_rank();
  }
  [[noreturn]] static void refuse_rank();
  void assign(const int64_t* sizes, int rank) noexcept {
    rank_ = rank;
    for (int i = 0; i < rank; ++i) {
      sizes_[i] = sizes[i];
      asm("");  // or the compiler would make the loop a call of memmove, which takes longer for a few numbers
    }
  }
  int rank_ = 0;
  int64_t sizes_[max_rank];
};

// No argument means every axis; one number or a list means those: x.sum(), x.sum(-1), x.sum({0, 2}).
class Axes {
 public:
  Axes() = default;
  template <detail::Whole T> Axes(T axis) : list_{axis}, all_(false) {}
  Axes(std::initializer_list<Int> axes) : list_(axes), all_(axes.size() == 0) {}
  template <detail::ListOfIntegers List> Axes(const List& axes) : list_(axes), all_(list_.empty()) {}
  Axes(const Shape& axes) : list_(axes), all_(axes.empty()) {}

  bool all() const noexcept { return all_; }
  const Shape& list() const noexcept { return list_; }

 private:
  Shape list_;
  bool all_ = true;
};

// A list of any length of whole numbers of any integer type: pad(x, {1, values.size()}).
class Ints {
 public:
  Ints() = default;
  Ints(std::initializer_list<Int> values) {
    for (const Int& v : values) values_.push_back(v);
  }
  template <detail::ListOfIntegers List> Ints(const List& values) {
    for (const auto v : values) values_.push_back(Int(v));
  }

  size_t size() const noexcept { return values_.size(); }
  auto begin() const noexcept { return values_.begin(); }
  auto end() const noexcept { return values_.end(); }
  operator const std::vector<int64_t>&() const noexcept { return values_; }

 private:
  std::vector<int64_t> values_;
};

}  // namespace volta
