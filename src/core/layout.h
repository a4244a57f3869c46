// Layout: shape, strides and offset of a tensor in its storage; every view is a pure function on it.
#pragma once
#include <optional>

#include <volta/shape.h>
#include <volta/tensor.h>

namespace volta {

struct Layout {
  Shape shape;
  Shape strides;       // in elements; 0 repeats, negative runs backwards
  int64_t offset = 0;  // of the first element, in elements

  static Layout contiguous(const Shape& shape);
  static Layout channels_last(const Shape& shape);  // a contiguous [n, …, c] seen as [n, c, …]
  int rank() const { return shape.size(); }
  int64_t numel() const { return shape.numel(); }
  bool is_contiguous() const;     // row-major without gaps
  bool is_channels_last() const;  // as channels_last makes it; one channel or one pixel is both
  bool is_dense() const;          // some order of the axes is row-major without gaps
  bool overlaps_itself() const;   // two indices share a byte (expanded, or overlapping windows)
  friend bool operator==(const Layout&, const Layout&) = default;
};

// First and one past last element touched, in elements relative to the storage; equal when empty.
struct Extent {
  int64_t begin, end;
};
Extent extent(const Layout& layout);

// Checked arithmetic on sizes. `op` names the caller in the error.
int64_t checked_numel(const Shape& shape, const char* op);
int normalize_axis(int64_t axis, int rank, const Shape& shape, const char* op);
Shape normalize_axes(const Axes& axes, const Shape& shape, const char* op);  // sorted, no repeats; all when none given
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);
Shape infer_shape(const Shape& wanted, const Shape& from, const char* op);  // fills in one -1

// `shape` with the `count` axes from `axis` on replaced by others; and two shapes as one.
Shape spliced(const Shape& shape, int axis, int count, const Shape& others);
Shape joined(const Shape& a, const Shape& b);

namespace views {
// Each throws an Error named after `op` when the arguments do not fit.
std::optional<Layout> reshape(const Layout& x, const Shape& shape);  // nothing when it needs a copy
Layout permute(const Layout& x, const Shape& axes);
Layout transpose(Layout x, int a, int b);
Layout expand(const Layout& x, const Shape& shape, const char* op);
Layout squeeze(Layout x, const Shape& axes);
Layout unsqueeze(Layout x, int axis);
Layout slice(Layout x, int axis, const Slice& s, const char* op);
Layout select(Layout x, int axis, int64_t index, const char* op);
Layout narrow(Layout x, int axis, int64_t start, int64_t length);
Layout flip(Layout x, const Shape& axes);
Layout diagonal(Layout x, int64_t offset, int a, int b);
Layout unfold(Layout x, int axis, int64_t size, int64_t step);
}  // namespace views

}  // namespace volta
