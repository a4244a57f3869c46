// Ops that join, arrange and split whole tensors, made of cat, views and the diagonal.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/room.h"
#include "graph/record.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"
#include "ops/part.h"

namespace volta {
namespace {

Tensor joined_along(const std::vector<Tensor>& tensors, const char* op, int64_t dim, Tensor (*as)(const Tensor&)) {
  require(!tensors.empty(), ErrorKind::argument, op, "needs at least one tensor");
  std::vector<Tensor> list;
  for (const Tensor& x : tensors) list.push_back(as(x.checked(op)));
  return blamed_on(op, [&] { return cat(list, dim); });
}

Tensor as_column(const Tensor& x) { return x.dim() <= 1 ? x.reshape({x.numel(), 1}) : x; }

// C(n, r), or of n + r - 1 elements with replacement: how many rows combinations has.
int64_t combination_count(int64_t n, int64_t r, const char* op) {
  int64_t count = 1;
  const int64_t steps = std::min(r, n - r);
  for (int64_t k = 1; k <= steps; ++k) {
    const bool fine = !__builtin_mul_overflow(count, n - steps + k, &count);
    require(fine, ErrorKind::argument, op, "too many combinations: ", r, " of ", n);
    count /= k;
  }
  return count;
}

std::vector<Tensor> equal_pieces(const Tensor& x, int64_t sections, int axis, const char* op) {
  require(sections > 0 && x.size(axis) % sections == 0, ErrorKind::argument, op, "axis ", axis, " of shape ", x,
          " does not split into ", sections, " equal pieces");
  return blamed_on(op, [&] { return tensor_split(x, sections, axis); });
}
std::vector<Tensor> pieces_between(const Tensor& x, const Ints& indices, int axis, const char* op) {
  return blamed_on(op, [&] { return tensor_split(x, indices, axis); });
}
int column_axis(const Tensor& x) { return axis_of(x, x.checked("hsplit").dim() == 1 ? 0 : 1, "hsplit", 1); }
int row_axis(const Tensor& x) { return axis_of(x, 0, "vsplit", 2); }
int third_axis(const Tensor& x) { return axis_of(x, 2, "dsplit", 3); }

// A copy of x whose part is the source.
template <class Part> Tensor replaced(const Tensor& x, const Tensor& source, const char* op, Part part) {
  common_device(x.checked(op), source.checked(op), op);
  return blamed_on(op, [&] {
    const Tensor y = x.clone();
    Tensor place = part(y);
    require(source.shape() == place.shape(), ErrorKind::shape, op, "a source of shape ", source,
            " does not fit a part of shape ", place);
    place.copy_(source);
    return y;
  });
}

}  // namespace

Tensor atleast_1d(const Tensor& x) { return x.checked("atleast_1d").dim() == 0 ? x.reshape({1}) : x; }
Tensor atleast_2d(const Tensor& x) {
  const int64_t rank = x.checked("atleast_2d").dim();
  return rank == 0 ? x.reshape({1, 1}) : rank == 1 ? x.unsqueeze(0) : x;
}
Tensor atleast_3d(const Tensor& x) {
  const int64_t rank = x.checked("atleast_3d").dim();
  if (rank == 0) return x.reshape({1, 1, 1});
  return rank == 1 ? x.unsqueeze(0).unsqueeze(-1) : rank == 2 ? x.unsqueeze(-1) : x;
}

Tensor vstack(const std::vector<Tensor>& tensors) { return joined_along(tensors, "vstack", 0, atleast_2d); }
Tensor hstack(const std::vector<Tensor>& tensors) {
  const bool vectors = !tensors.empty() && tensors[0].checked("hstack").dim() <= 1;
  return joined_along(tensors, "hstack", vectors ? 0 : 1, atleast_1d);
}
Tensor dstack(const std::vector<Tensor>& tensors) { return joined_along(tensors, "dstack", 2, atleast_3d); }
Tensor column_stack(const std::vector<Tensor>& tensors) { return joined_along(tensors, "column_stack", 1, as_column); }

Tensor block_diag(const std::vector<Tensor>& tensors) {
  const char* op = "block_diag";
  require(!tensors.empty(), ErrorKind::argument, op, "needs at least one tensor");
  std::vector<Tensor> blocks;
  int64_t width = 0, left = 0;
  for (const Tensor& x : tensors) {
    require(x.checked(op).dim() <= 2, ErrorKind::shape, op, "needs matrices, got shape ", x);
    common_device(tensors[0], x, op);
    blocks.push_back(atleast_2d(x));
    require(!__builtin_add_overflow(width, blocks.back().size(1), &width), ErrorKind::shape, op, "too many columns");
  }
  return blamed_on(op, [&] {
    for (Tensor& x : blocks) {
      const int64_t own = x.size(1);
      x = pad(x, {left, width - left - own});
      left += own;
    }
    return cat(blocks, 0);
  });
}

Tensor Plain::cartesian_prod(const std::vector<Tensor>& tensors) {
  const char* op = "cartesian_prod";
  require(!tensors.empty(), ErrorKind::argument, op, "needs at least one tensor");
  for (const Tensor& x : tensors)
    require(x.checked(op).dim() == 1, ErrorKind::shape, op, "needs vectors, got shape ", x);
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  return blamed_on(op, [&] {
    for (const Tensor& grid : meshgrid(tensors)) columns.push_back(grid.reshape({grid.numel()}));
    return stack(columns, 1);
  });
}

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  const char* op = "combinations";
  require(x.checked(op).dim() == 1, ErrorKind::shape, op, "needs a vector, got shape ", x);
  require(r >= 0, ErrorKind::argument, op, "cannot choose ", r, " elements");
  const int64_t n = x.numel();
  if (r == 0) return x.narrow(0, 0, 0).clone();
  if (with_replacement ? n == 0 : r > n)
    return blamed_on(op, [&] { return x.narrow(0, 0, 0).reshape({0, r}).clone(); });
  int64_t many = 0;
  require(!with_replacement || !__builtin_add_overflow(n, r - 1, &many), ErrorKind::argument, op,
          "too many combinations");
  const int64_t rows = combination_count(with_replacement ? many : n, r, op);
  checked_numel({rows, r}, op);
  const Tensor places = blamed_on(op, [&] { return empty({rows * r}, {.dtype = i64, .device = Device()}); });
  std::vector<int64_t> now(static_cast<size_t>(r));
  for (size_t k = 0; k < now.size(); ++k) now[k] = with_replacement ? 0 : int64_t(k);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy(now.begin(), now.end(), places.data<int64_t>() + row * r);
    size_t k = now.size();
    const auto last = [&](size_t i) { return with_replacement ? n - 1 : n - r + int64_t(i); };
    while (k > 0 && now[k - 1] == last(k - 1)) --k;
    if (k == 0) break;
    const int64_t from = ++now[k - 1];
    for (size_t i = k; i < now.size(); ++i) now[i] = with_replacement ? from : from + int64_t(i - k) + 1;
  }
  return pick_slices(op, x, 0, places.to(x.device())).reshape({rows, r});
}

Tensor moveaxis(const Tensor& x, const Axes& source, const Axes& destination) {
  return blamed_on("moveaxis", [&] { return movedim(x, source, destination); });
}
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1) {
  return blamed_on("swapaxes", [&] { return transpose(x, axis0, axis1); });
}
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1) {
  return blamed_on("swapdims", [&] { return transpose(x, dim0, dim1); });
}

Tensor fliplr(const Tensor& x) {
  require(x.checked("fliplr").dim() >= 2, ErrorKind::shape, "fliplr", "needs at least two axes, got shape ", x);
  return flip(x, 1);
}
Tensor flipud(const Tensor& x) {
  require(x.checked("flipud").dim() >= 1, ErrorKind::shape, "flipud", "needs at least one axis, got shape ", x);
  return flip(x, 0);
}

Tensor rot90(const Tensor& x, int64_t k, const Axes& dims) {
  const char* op = "rot90";
  require(x.checked(op).dim() >= 2, ErrorKind::shape, op, "needs at least two axes, got shape ", x);
  require(dims.list().size() == 2, ErrorKind::argument, op, "needs two axes, got ", dims.list().size());
  const int a = axis_of(x, dims.list()[0], op), b = axis_of(x, dims.list()[1], op);
  require(a != b, ErrorKind::argument, op, "needs two different axes of shape ", x);
  const int64_t turns = ((k % 4) + 4) % 4;
  if (turns == 0) return x.clone();
  const Tensor flipped = flip(x, turns == 2 ? Axes{a, b} : Axes(turns == 1 ? b : a));
  const Tensor own = flipped.shares_storage(x) ? flipped.clone() : flipped;  // a copy, as in PyTorch
  return turns == 2 ? own : own.transpose(a, b);
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const char* op = "diag_embed";
  const int rank = int(x.checked(op).dim()) + 1;
  require(rank >= 2, ErrorKind::shape, op, "needs at least one axis, got shape ", x);
  const int a = normalize_axis(dim1, rank, x.shape(), op), b = normalize_axis(dim2, rank, x.shape(), op);
  require(a != b, ErrorKind::argument, op, "needs two different axes");
  int64_t n = 0;
  const bool fits = offset != INT64_MIN && !__builtin_add_overflow(x.size(-1), offset < 0 ? -offset : offset, &n);
  require(fits, ErrorKind::argument, op, "an offset of ", offset, " is too large");
  Shape shape = x.shape();
  shape.erase(rank - 2);
  blamed_on(op, [&] { shape.insert(std::min(a, b), n), shape.insert(std::max(a, b), n); });
  checked_numel(shape, op);
  return embed(x, shape, views::diagonal(Layout::contiguous(shape), offset, a, b));
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  const char* op = "tensor_split";
  const int axis = axis_of(x, dim, op, 1);
  require(sections > 0, ErrorKind::argument, op, "needs at least one section, got ", sections);
  const int64_t n = x.size(axis), least = n / sections, larger = n % sections;
  require_pieces(x, sections, op);
  return within_memory(op, [&] {
    std::vector<Tensor> pieces;
    pieces.reserve(size_t(sections));
    int64_t from = 0;
    for (int64_t i = 0; i < sections; ++i) {
      pieces.push_back(narrow(x, axis, from, least + (i < larger)));
      from += least + (i < larger);
    }
    return pieces;
  });
}

std::vector<Tensor> tensor_split(const Tensor& x, const Ints& indices, int64_t dim) {
  const int axis = axis_of(x, dim, "tensor_split", 1);
  return within_memory("tensor_split", [&] {
    std::vector<Tensor> pieces;
    int64_t from = 0;
    for (int64_t end : indices) {
      pieces.push_back(slice(x, axis, from, end));
      from = end;
    }
    pieces.push_back(slice(x, axis, from, {}));
    return pieces;
  });
}

std::vector<Tensor> hsplit(const Tensor& x, int64_t sections) {
  return equal_pieces(x, sections, column_axis(x), "hsplit");
}
std::vector<Tensor> hsplit(const Tensor& x, const Ints& indices) {
  return pieces_between(x, indices, column_axis(x), "hsplit");
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections) {
  return equal_pieces(x, sections, row_axis(x), "vsplit");
}
std::vector<Tensor> vsplit(const Tensor& x, const Ints& indices) {
  return pieces_between(x, indices, row_axis(x), "vsplit");
}
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections) {
  return equal_pieces(x, sections, third_axis(x), "dsplit");
}
std::vector<Tensor> dsplit(const Tensor& x, const Ints& indices) {
  return pieces_between(x, indices, third_axis(x), "dsplit");
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  const char* op = "broadcast_tensors";
  Shape shape;
  for (const Tensor& x : tensors) shape = broadcast_shapes(shape, x.checked(op).shape(), op);
  return blamed_on(op, [&] {
    std::vector<Tensor> wide;
    for (const Tensor& x : tensors) wide.push_back(x.expand(shape));
    return wide;
  });
}

Tensor diagflat(const Tensor& x, int64_t offset) {
  return blamed_on("diagflat", [&] { return diag(x.checked("diagflat").reshape({x.numel()}), offset); });
}

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  return replaced(x, src, "select_scatter", [&](const Tensor& y) { return y.select(dim, index); });
}
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> begin,
                     std::optional<int64_t> end, int64_t step) {
  return replaced(x, src, "slice_scatter", [&](const Tensor& y) { return y.slice(dim, begin, end, step); });
}
Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return replaced(x, src, "diagonal_scatter", [&](const Tensor& y) { return y.diagonal(offset, dim1, dim2); });
}

}  // namespace volta
