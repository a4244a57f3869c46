// The view algebra: shapes, strides, broadcasting.
#include "core/layout.h"

#include <algorithm>
#include <ostream>

namespace volta {
namespace {

// Axes are few: insertion sort, stable.
template <class Less> void sort_axes(int* order, int n, Less less) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && less(order[j], order[j - 1]); --j) std::swap(order[j], order[j - 1]);
}

}  // namespace

Shape::Shape(std::span<const int64_t> sizes) {
  resize(int(std::min<size_t>(sizes.size(), size_t(max_rank) + 1)));
  std::copy(sizes.begin(), sizes.end(), sizes_);
}

Shape Shape::filled(int rank, int64_t value) {
  Shape s;
  s.resize(rank);
  std::fill(s.begin(), s.end(), value);
  return s;
}

void Shape::resize(int rank) {
  if (rank > max_rank)
    throw Error(Error::Kind::shape, "shape", "more than " + std::to_string(max_rank) + " axes are not supported");
  for (int i = rank_; i < rank; ++i) sizes_[i] = 0;
  rank_ = rank;
}

void Shape::push_back(int64_t size) {
  resize(rank_ + 1);
  sizes_[rank_ - 1] = size;
}

void Shape::insert(int axis, int64_t size) {
  resize(rank_ + 1);
  std::move_backward(begin() + axis, end() - 1, end());
  sizes_[axis] = size;
}

void Shape::erase(int axis) noexcept {
  std::move(begin() + axis + 1, end(), begin() + axis);
  --rank_;
}

int64_t Shape::numel() const noexcept {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= sizes_[i];
  return n;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(sizes_[i]);
  return s + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

Layout Layout::contiguous(const Shape& shape) {
  Layout l{shape, shape, 0};
  int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    l.strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return l;
}

bool Layout::is_contiguous() const {
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    if (strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

bool Layout::is_dense() const {
  int order[Shape::max_rank], n = 0;
  for (int i = 0; i < rank(); ++i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    if (strides[i] <= 0) return false;
    order[n++] = i;
  }
  sort_axes(order, n, [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t step = 1;
  for (int i = 0; i < n; ++i) {
    if (strides[order[i]] != step) return false;
    step *= shape[order[i]];
  }
  return true;
}

// Sufficient and cheap: sorted by |stride|, each axis must step over everything the smaller ones reach.
bool Layout::overlaps_itself() const {
  int order[Shape::max_rank], n = 0;
  for (int i = 0; i < rank(); ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] > 1) order[n++] = i;
  }
  sort_axes(order, n, [&](int a, int b) { return std::abs(strides[a]) < std::abs(strides[b]); });
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
    if (s < 0) throw Error(Error::Kind::shape, op, shape.str() + ": sizes must not be negative");
    empty |= s == 0;
    huge |= __builtin_mul_overflow(n, std::max<int64_t>(s, 1), &n) || n > (int64_t(1) << 59);
  }
  if (huge) throw Error(Error::Kind::shape, op, shape.str() + ": too many elements");
  return empty ? 0 : n;
}

int normalize_axis(int64_t axis, int rank, const Shape& shape, const char* op) {
  const int64_t limit = std::max(rank, 1);
  if (axis < -limit || axis >= limit)
    throw Error(Error::Kind::index, op,
                "axis " + std::to_string(axis) + " is out of range for shape " + shape.str() + " (" +
                    std::to_string(rank) + " axes)");
  return int(axis < 0 ? axis + limit : axis);
}

Shape normalize_axes(const Axes& axes, const Shape& shape, const char* op) {
  Shape list;
  if (axes.all()) {
    for (int i = 0; i < shape.size(); ++i) list.push_back(i);
    return list;
  }
  for (int64_t a : axes.list()) list.push_back(normalize_axis(a, shape.size(), shape, op));
  std::sort(list.begin(), list.end());
  if (std::adjacent_find(list.begin(), list.end()) != list.end())
    throw Error(Error::Kind::argument, op,
                "axes " + axes.list().str() + " name one axis twice, for shape " + shape.str());
  if (shape.empty()) list = {};
  return list;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  const int n = std::max(a.size(), b.size());
  Shape out = Shape::filled(n, 1);
  for (int i = 0; i < n; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(Error::Kind::shape, op,
                  a.str() + " and " + b.str() + " do not broadcast: sizes " + std::to_string(x) + " and " +
                      std::to_string(y) + " differ and neither is 1");
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Shape infer_shape(const Shape& wanted, const Shape& from, const char* op) {
  const int64_t total = from.numel();
  int hole = -1;
  int64_t known = 1;
  bool fits = true;
  for (int i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1 && hole < 0) hole = i;
    else if (wanted[i] < 0) fits = false;
    else fits = fits && !__builtin_mul_overflow(known, wanted[i], &known);
  }
  Shape out = wanted;
  if (hole >= 0) fits = fits && known != 0 && total % known == 0;
  else fits = fits && known == total;
  if (!fits)
    throw Error(Error::Kind::shape, op,
                "a tensor of shape " + from.str() + " with " + std::to_string(total) + " elements cannot become " +
                    wanted.str());
  if (hole >= 0) out[hole] = total / known;
  return out;
}

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
  Layout out = x;
  for (int i = 0; i < axes.size(); ++i) {
    out.shape[i] = x.shape[int(axes[i])];
    out.strides[i] = x.strides[int(axes[i])];
  }
  return out;
}

Layout transpose(const Layout& x, int a, int b) {
  Layout out = x;
  std::swap(out.shape[a], out.shape[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
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
  if (!fits)
    throw Error(Error::Kind::shape, op, "a tensor of shape " + x.shape.str() + " cannot expand to " + shape.str());
  checked_numel(out.shape, op);
  return out;
}

Layout squeeze(const Layout& x, const Shape& axes) {
  Layout out{{}, {}, x.offset};
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape[i] == 1 && std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    out.shape.push_back(x.shape[i]);
    out.strides.push_back(x.strides[i]);
  }
  return out;
}

Layout unsqueeze(const Layout& x, int axis) {
  Layout out = x;
  out.shape.insert(axis, 1);
  out.strides.insert(axis, axis < x.rank() ? x.strides[axis] * x.shape[axis] : 1);
  return out;
}

Layout slice(const Layout& x, int axis, const Slice& s, const char* op) {
  const int64_t n = x.shape[axis], step = s.step;
  if (step == 0) throw Error(Error::Kind::argument, op, "a slice's step must not be 0");
  const auto place = [&](int64_t i) {
    return std::clamp(i < 0 ? i + n : i, step > 0 ? int64_t(0) : int64_t(-1), step > 0 ? n : n - 1);
  };
  const int64_t begin = s.begin ? place(*s.begin) : step > 0 ? 0 : n - 1;
  const int64_t end = s.end ? place(*s.end) : step > 0 ? n : -1;
  const int64_t span = step > 0 ? end - begin : begin - end, stride = step > 0            ? step
                                                                      : step == INT64_MIN ? INT64_MAX
                                                                                          : -step;
  Layout out = x;
  out.shape[axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
  out.strides[axis] = out.shape[axis] > 1 ? x.strides[axis] * step : x.strides[axis];
  if (out.shape[axis] > 0) out.offset += begin * x.strides[axis];
  return out;
}

Layout select(const Layout& x, int axis, int64_t index, const char* op) {
  const int64_t n = x.shape[axis];
  if (index < -n || index >= n)
    throw Error(Error::Kind::index, op,
                "index " + std::to_string(index) + " is out of range for axis " + std::to_string(axis) + " of shape " +
                    x.shape.str());
  Layout out = x;
  out.offset += (index < 0 ? index + n : index) * x.strides[axis];
  out.shape.erase(axis);
  out.strides.erase(axis);
  return out;
}

Layout narrow(const Layout& x, int axis, int64_t start, int64_t length) {
  Layout out = x;
  out.shape[axis] = length;
  if (length > 0) out.offset += start * x.strides[axis];
  return out;
}

Layout flip(const Layout& x, const Shape& axes) {
  Layout out = x;
  for (int64_t a : axes) {
    const int i = int(a);
    if (x.shape[i] > 0) out.offset += (x.shape[i] - 1) * x.strides[i];
    out.strides[i] = -x.strides[i];
  }
  return out;
}

Layout diagonal(const Layout& x, int64_t offset, int a, int b) {
  Layout out = x;
  const int64_t rows = offset < 0 ? x.shape[a] + offset : x.shape[a],
                cols = offset > 0 ? x.shape[b] - offset : x.shape[b];
  const int64_t n = std::max<int64_t>(0, std::min(rows, cols));
  if (n > 0) out.offset += offset > 0 ? offset * x.strides[b] : -offset * x.strides[a];
  const int64_t step = x.strides[a] + x.strides[b];
  for (int axis : {std::max(a, b), std::min(a, b)}) {
    out.shape.erase(axis);
    out.strides.erase(axis);
  }
  out.shape.push_back(n);
  out.strides.push_back(step);
  return out;
}

Layout unfold(const Layout& x, int axis, int64_t size, int64_t step) {
  Layout out = x;
  out.shape[axis] = (x.shape[axis] - size) / step + 1;
  out.strides[axis] = x.strides[axis] * step;
  out.shape.push_back(size);
  out.strides.push_back(x.strides[axis]);
  return out;
}

}  // namespace views
}  // namespace volta
