// PerAxis: a number for each axis of a window.
#pragma once
#include <volta/error.h>
#include <volta/shape.h>

namespace volta {

// One number for every axis, or one for each: 2, {2, 1}.
class PerAxis {
 public:
  PerAxis(detail::Whole auto all) : sizes_{all} {}
  PerAxis(std::initializer_list<Int> each) : sizes_(each) {}
  PerAxis(const Shape& each) : sizes_(each) {}
  template <detail::Whole T> static PerAxis list(std::initializer_list<T> each) { return Shape(std::vector<T>(each)); }
  const Shape& given() const { return sizes_; }
  // Throws unless there are one or `axes` numbers.
  Shape of(int axes, const char* op, const char* what) const {
    if (sizes_.size() == axes) return sizes_;
    if (sizes_.size() == 1) return Shape::filled(axes, sizes_[0]);
    throw Error(
        Error::Kind::argument, op,
        std::string(what) + " has " + std::to_string(sizes_.size()) + " numbers for " + std::to_string(axes) + " axes");
  }

 private:
  Shape sizes_;
};

}  // namespace volta
