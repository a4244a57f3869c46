// The view algebra: shapes, strides, broadcasting.
#include <algorithm>
#include <ostream>

#include "core/checked_arithmetic.h"

namespace volta {

Shape::Shape(std::initializer_list<Int> sizes) {
  make_room(sizes.size());
  for (const Int& size : sizes) sizes_[rank_++] = size;
}

Shape::Shape(std::span<const int64_t> sizes) {
  make_room(sizes.size());
  assign(sizes.data(), int(sizes.size()));
}

void Shape::refuse_rank() { throw_error(ErrorKind::shape, "shape", "more than ", max_rank, " axes are not supported"); }

int64_t Shape::place_from_end(int64_t axis) const {
  require(axis < 0 && axis >= -rank_, ErrorKind::index, "shape", "axis ", axis, " is out of range for shape ", *this,
          " (", rank_, " axes)");
  return axis + rank_;
}

Shape Shape::filled(int rank, int64_t value) {
  if (rank < 0)
    throw Error(Error::Kind::argument, "Shape::filled", "the rank " + std::to_string(rank) + " is negative");
  Shape s;
  while (s.size() < rank) s.push_back(value);
  return s;
}

void Shape::resize(int rank) {
  require(rank >= 0, ErrorKind::shape, "shape", "a number of axes is not negative, got ", rank);
  make_room(size_t(rank));
  for (int i = rank_; i < rank; ++i) sizes_[i] = 0;
  rank_ = rank;
}

void Shape::push_back(int64_t size) {
  make_room(size_t(rank_) + 1);
  sizes_[rank_++] = size;
}

void Shape::insert(int axis, int64_t size) {
  axis = axis == rank_ ? rank_ : int(place(axis));
  resize(rank_ + 1);
  std::move_backward(begin() + axis, end() - 1, end());
  sizes_[axis] = size;
}

void Shape::erase(int axis) {
  axis = int(place(axis));
  std::move(begin() + axis + 1, end(), begin() + axis);
  --rank_;
}

int64_t Shape::numel() const noexcept {
  int64_t n = 1;
  for (int64_t s : *this)
    if (__builtin_mul_overflow(n, s, &n)) return std::count(begin(), end(), 0) > 0 ? 0 : INT64_MAX;
  return n;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(sizes_[i]);
  return s + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

Layout Layout::contiguous(const Shape& shape) {
  Layout l;
  l.shape = l.strides = shape;
  int64_t step = 1, *strides = l.strides.begin();
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape.begin()[i], 1);
  }
  return l;
}

namespace {

// [n, c, …] to [n, …, c], and back.
void move_channels_last(Shape& s) { std::rotate(s.begin() + 1, s.begin() + 2, s.end()); }
void move_channels_second(Shape& s) { std::rotate(s.begin() + 1, s.end() - 1, s.end()); }

}  // namespace

Layout Layout::channels_last(const Shape& shape) {
  Shape moved = shape;
  move_channels_last(moved);
  Layout l = contiguous(moved);
  move_channels_second(l.shape), move_channels_second(l.strides);
  return l;
}

bool Layout::is_channels_last() const {
  if (rank() < 3) return false;
  Layout moved = *this;
  move_channels_last(moved.shape), move_channels_last(moved.strides);
  return moved.is_contiguous();
}

bool Layout::is_contiguous() const {
  const int64_t *sizes = shape.begin(), *steps = strides.begin();
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    if (steps[i] != step) return false;
    step *= sizes[i];
  }
  return true;
}

namespace {

// The axes longer than 1, those with small steps first; their number.
int axes_by_step(const Layout& l, int* order) {
  int n = 0;
  const int64_t *size = l.shape.begin(), *stride = l.strides.begin();
  for (int i = 0; i < l.rank(); ++i)
    if (size[i] > 1) order[n++] = i;
  std::sort(order, order + n, [&](int a, int b) { return std::abs(stride[a]) < std::abs(stride[b]); });
  return n;
}

void drop_axis(Layout& x, int axis) {
  x.shape.erase(axis);
  x.strides.erase(axis);
}

void append_axis(Layout& x, int64_t size, int64_t stride) {
  x.shape.push_back(size);
  x.strides.push_back(stride);
}

// Keeps `count` places of an axis: from, from + step, from + 2 step …
Layout every(Layout x, int axis, int64_t from, int64_t step, int64_t count) {
  x.shape[axis] = count;
  if (count > 0) x.offset += from * x.strides[axis];
  if (count > 1) x.strides[axis] *= step;
  return x;
}

}  // namespace

bool Layout::is_dense() const {
  if (numel() == 0) return true;
  int order[Shape::max_rank];
  const int n = axes_by_step(*this, order);
  int64_t step = 1;
  for (int i = 0; i < n; step *= shape[order[i++]])
    if (strides[order[i]] != step) return false;
  return true;
}

// Sufficient and cheap: sorted by |stride|, each axis must step over everything the smaller ones reach.
bool Layout::overlaps_itself() const {
  if (numel() == 0) return false;
  int order[Shape::max_rank];
  const int n = axes_by_step(*this, order);
  int64_t reach = 0;
  for (int i = 0; i < n; ++i) {
    const int64_t step = std::abs(strides[order[i]]);
    if (step <= reach) return true;
    reach += step * (shape[order[i]] - 1);
  }
  return false;
}

Extent extent(const Layout& l) {
  int64_t low = l.offset, high = l.offset;
  for (int i = 0; i < l.rank(); ++i) {
    if (l.shape[i] == 0) return {l.offset, l.offset};
    const int64_t reach = l.strides[i] * (l.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high + 1};
}

int64_t checked_numel(const Shape& shape, const char* op) {
  int64_t n = 1;
  bool empty = false, huge = false;
  for (int64_t s : shape) {
    require(s >= 0, ErrorKind::shape, op, shape, ": sizes must not be negative");
    empty |= s == 0;
    huge |= __builtin_mul_overflow(n, std::max<int64_t>(s, 1), &n) || n > (int64_t(1) << 59);
  }
  require(!huge, ErrorKind::shape, op, shape, ": too many elements");
  return empty ? 0 : n;
}

int normalize_axis(int64_t axis, int rank, const Shape& shape, const char* op) {
  const int64_t limit = std::max(rank, 1);
  require(axis >= -limit && axis < limit, ErrorKind::index, op, "axis ", axis, " is out of range for shape ", shape,
          " (", rank, " axes)");
  return int(axis < 0 ? axis + limit : axis);
}

Shape normalize_axes(const Axes& axes, const Shape& shape, const char* op) {
  Shape list;
  if (axes.all())
    for (int i = 0; i < shape.size(); ++i) list.push_back(i);
  for (int64_t a : axes.list()) list.push_back(normalize_axis(a, shape.size(), shape, op));
  std::sort(list.begin(), list.end());
  require(std::adjacent_find(list.begin(), list.end()) == list.end(), ErrorKind::argument, op, "axes ", axes.list(),
          " name one axis twice, for shape ", shape);
  return shape.empty() ? Shape() : list;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  const int n = std::max(a.size(), b.size());
  Shape out = Shape::filled(n, 1);
  for (int i = 0; i < n; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, ErrorKind::shape, op, a, " and ", b, " do not broadcast: sizes ", x, " and ", y,
            " differ and neither is 1");
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Shape infer_shape(const Shape& wanted, const Shape& from, const char* op) {
  const int64_t total = from.numel();
  int64_t known = 1, *hole = nullptr;
  Shape out = wanted;
  bool fits = true;
  for (int64_t& n : out) {
    if (n == -1 && !hole) hole = &n;
    else fits = fits && n >= 0 && !__builtin_mul_overflow(known, n, &known);
  }
  fits = fits && (hole ? known != 0 && total % known == 0 : known == total);
  require(fits, ErrorKind::shape, op, "a tensor of shape ", from, " with ", total, " elements cannot become ", wanted);
  if (hole) *hole = total / known;
  if (total == 0) checked_numel(out, op);  // the sizes beside the 0 may be any
  return out;
}

Shape spliced(const Shape& shape, int axis, int count, const Shape& others) {
  Shape s = shape;
  s.resize(axis);
  for (int64_t n : others) s.push_back(n);
  for (int i = axis + count; i < shape.size(); ++i) s.push_back(shape[i]);
  return s;
}

Shape joined(const Shape& a, const Shape& b) { return spliced(a, a.size(), 0, b); }

namespace views {

std::optional<Layout> reshape(const Layout& x, const Shape& shape) {
  Layout out = Layout::contiguous(shape);
  out.offset = x.offset;
  if (x.numel() == 0 || x.is_contiguous()) return out;
  // Merge runs of axes that step evenly; each run must be covered by whole new axes.
  int next = shape.size() - 1;
  for (int i = x.rank() - 1; i >= 0;) {
    if (x.shape[i] == 1) {
      --i;
      continue;
    }
    const int64_t base = x.strides[i];
    int64_t run = x.shape[i--];
    while (i >= 0 && (x.shape[i] == 1 || x.strides[i] == base * run)) run *= x.shape[i--];
    int64_t covered = 1;
    while (next >= 0 && (covered < run || shape[next] == 1)) {
      out.strides[next] = base * covered;
      covered *= shape[next--];
    }
    if (covered != run) return std::nullopt;
  }
  return out;
}

Layout permute(const Layout& x, const Shape& axes) {
  Layout out{{}, {}, x.offset};
  for (int64_t a : axes) append_axis(out, x.shape[int(a)], x.strides[int(a)]);
  return out;
}

Layout transpose(Layout x, int a, int b) {
  std::swap(x.shape[a], x.shape[b]);
  std::swap(x.strides[a], x.strides[b]);
  return x;
}

Layout expand(const Layout& x, const Shape& shape, const char* op) {
  const int extra = shape.size() - x.rank();
  Layout out{shape, Shape::filled(shape.size(), 0), x.offset};
  bool fits = extra >= 0;
  for (int i = 0; fits && i < shape.size(); ++i) {
    const int64_t have = i < extra ? 1 : x.shape[i - extra];
    if (shape[i] == -1 && i >= extra) out.shape[i] = have;
    fits = out.shape[i] == have || (have == 1 && out.shape[i] >= 0);
    if (i >= extra && out.shape[i] == have) out.strides[i] = x.strides[i - extra];
  }
  require(fits, ErrorKind::shape, op, "a tensor of shape ", x.shape, " cannot expand to ", shape);
  checked_numel(out.shape, op);
  return out;
}

Layout squeeze(Layout x, const Shape& axes) {
  for (int i = axes.size() - 1; i >= 0; --i)
    if (x.shape[int(axes[i])] == 1) drop_axis(x, int(axes[i]));
  return x;
}

Layout unsqueeze(Layout x, int axis) {
  x.strides.insert(axis, axis < x.rank() ? x.strides[axis] * x.shape[axis] : 1);
  x.shape.insert(axis, 1);
  return x;
}

Layout slice(Layout x, int axis, const Slice& s, const char* op) {
  const int64_t n = x.shape[axis], step = s.step;
  require(step != 0, ErrorKind::argument, op, "a slice's step must not be 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place = [&](int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  const int64_t begin = s.begin ? place(*s.begin) : step > 0 ? low : high;
  const int64_t end = s.end ? place(*s.end) : step > 0 ? high : low;
  const int64_t span = step > 0 ? end - begin : begin - end;
  const int64_t pace = step == INT64_MIN ? INT64_MAX : std::abs(step);
  return every(x, axis, begin, step, span <= 0 ? 0 : (span - 1) / pace + 1);
}

Layout select(Layout x, int axis, int64_t index, const char* op) {
  const int64_t n = x.shape[axis];
  require(index >= -n && index < n, ErrorKind::index, op, "index ", index, " is out of range for axis ", axis,
          " of shape ", x.shape);
  x = every(x, axis, index < 0 ? index + n : index, 1, 1);
  drop_axis(x, axis);
  return x;
}

Layout narrow(Layout x, int axis, int64_t start, int64_t length) { return every(std::move(x), axis, start, 1, length); }

Layout flip(Layout x, const Shape& axes) {
  for (int64_t a : axes) x = every(x, int(a), x.shape[int(a)] - 1, -1, x.shape[int(a)]);
  return x;
}

Layout diagonal(Layout x, int64_t offset, int a, int b) {
  offset = std::clamp(offset, -x.shape[a], x.shape[b]);  // beyond them there is no diagonal
  const int64_t below = std::max<int64_t>(0, -offset), above = std::max<int64_t>(0, offset);
  const int64_t n = std::max<int64_t>(0, std::min(x.shape[a] - below, x.shape[b] - above));
  if (n > 0) x.offset += above * x.strides[b] + below * x.strides[a];
  const int64_t step = x.strides[a] + x.strides[b];
  drop_axis(x, std::max(a, b));
  drop_axis(x, std::min(a, b));
  append_axis(x, n, step);
  return x;
}

Layout unfold(Layout x, int axis, int64_t size, int64_t step) {
  append_axis(x, size, x.strides[axis]);
  return every(x, axis, 0, step, (x.shape[axis] - size) / step + 1);
}

}  // namespace views
}  // namespace volta
