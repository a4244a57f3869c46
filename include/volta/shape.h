// Shape: a small inline list of sizes (or strides), and Axes: the axes an op works along.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace volta {

// Sizes of the axes, outermost first: Shape{2, 3}. Lives inline: no op allocates to describe a tensor.
class Shape {
 public:
  static constexpr int max_rank = 12;

  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  Shape(const std::vector<int64_t>& sizes) : Shape(std::span(sizes)) {}
  explicit Shape(std::span<const int64_t> sizes);
  Shape(const Shape& other) noexcept { assign(other.sizes_, other.rank_); }
  Shape& operator=(const Shape& other) noexcept {
    if (this != &other) assign(other.sizes_, other.rank_);
    return *this;
  }
  static Shape filled(int rank, int64_t value);

  int size() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  int64_t& operator[](int axis) noexcept { return sizes_[axis]; }
  int64_t operator[](int axis) const noexcept { return sizes_[axis]; }
  int64_t back() const noexcept { return sizes_[rank_ - 1]; }
  int64_t* begin() noexcept { return sizes_; }
  int64_t* end() noexcept { return sizes_ + rank_; }
  const int64_t* begin() const noexcept { return sizes_; }
  const int64_t* end() const noexcept { return sizes_ + rank_; }

  void push_back(int64_t size);
  void insert(int axis, int64_t size);
  void erase(int axis) noexcept;
  void resize(int rank);

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
  template <std::integral T> Axes(T axis) : list_{int64_t(axis)}, all_(false) {}
  Axes(std::initializer_list<int64_t> axes) : list_(axes), all_(axes.size() == 0) {}
  Axes(const std::vector<int64_t>& axes) : list_(axes), all_(axes.empty()) {}
  Axes(const Shape& axes) : list_(axes), all_(axes.empty()) {}

  bool all() const noexcept { return all_; }
  const Shape& list() const noexcept { return list_; }

 private:
  Shape list_;
  bool all_ = true;
};

}  // namespace volta
