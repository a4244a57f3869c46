// Einstein summation, and products that are cases of it or of multiplication: tensordot, outer, kron, cross, trace.
#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <volta/ops.h>
#include <volta/plain.h>

#include "core/checked_arithmetic.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

// Every axis of a term has a label: a letter, or a small number for the axes that an ellipsis stands for.
struct Factor {
  Tensor x;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The sizes of the axes of these labels, 1 for those that the term lacks.
Shape sizes_of(const Factor& t, const std::string& labels) {
  Shape s;
  for (char l : labels) s.push_back(has(t.labels, l) ? t.x.size(int64_t(t.labels.find(l))) : 1);
  return s;
}

Tensor permuted(const Factor& t, const std::string& order) {
  Shape axes;
  for (char l : order) axes.push_back(int64_t(t.labels.find(l)));
  return t.x.permute(axes);
}

// Drops axes of size 1 that merely repeat against `other` or that nobody keeps, and sums over the rest of the latter.
Factor reduced(Factor t, const std::string& other, const std::string& keep) {
  std::vector<int64_t> axes;
  const std::string labels = t.labels;
  for (size_t i = labels.size(); i-- > 0;) {
    const bool single = t.x.size(int64_t(i)) == 1, shared = has(other, labels[i]), kept = has(keep, labels[i]);
    if (single ? !shared && kept : shared || kept) continue;
    axes.push_back(int64_t(i));
    t.labels.erase(i, 1);
  }
  const bool view = std::all_of(axes.begin(), axes.end(), [&](int64_t a) { return t.x.size(a) == 1; });
  if (!axes.empty()) t.x = view ? t.x.squeeze(axes) : t.x.sum(axes);
  return t;
}

// The product of two terms, summed over the labels they share that nobody keeps: by broadcasting, or as a matrix
// product whose batch axes stay apart (it walks them by stride) while the others become rows, columns and inner axis.
Factor contract(Factor a, Factor b, const std::string& keep) {
  a = reduced(a, b.labels, keep);
  b = reduced(b, a.labels, keep);
  a = reduced(a, b.labels, keep);  // what b dropped
  std::string batch, inner, left, right;
  for (char l : a.labels) (!has(b.labels, l) ? left : has(keep, l) ? batch : inner) += l;
  for (char l : b.labels)
    if (!has(a.labels, l)) right += l;
  const std::string all = batch + left + right;
  if (inner.empty()) {
    const Tensor wide_b = permuted(b, batch + right).reshape(sizes_of(b, all));
    return {mul(permuted(a, batch + left).reshape(sizes_of(a, all)), wide_b), all};
  }
  const auto matrix = [&](const Factor& t, const std::string& rows, const std::string& columns) {
    const Shape shape{sizes_of(t, rows).numel(), sizes_of(t, columns).numel()};
    return permuted(t, batch + rows + columns).reshape(joined(sizes_of(t, batch), shape));
  };
  const Shape shape = joined(sizes_of(a, batch + left), sizes_of(b, right));
  return {matmul(matrix(a, left, inner), matrix(b, inner, right)).reshape(shape), all};
}

// Labels that are needed after terms i and j have been contracted.
std::string needed(const std::vector<Factor>& terms, size_t i, size_t j, const std::string& output) {
  std::string labels = output;
  for (size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) labels += terms[k].labels;
  return labels;
}

using Sizes = std::map<char, int64_t>;  // by label

// The pair whose product adds least to the memory taken; the first of equals.
std::pair<size_t, size_t> cheapest(const std::vector<Factor>& terms, const std::string& output, const Sizes& sizes) {
  std::pair<size_t, size_t> best{0, 1};
  double least = INFINITY;
  for (size_t i = 0; i < terms.size() && terms.size() > 2; ++i)
    for (size_t j = i + 1; j < terms.size(); ++j) {
      const std::string keep = needed(terms, i, j, output), both = terms[i].labels + terms[j].labels;
      double growth = 1;
      for (const auto& [label, n] : sizes)
        if (has(keep, label) && has(both, label)) growth *= double(n);
      growth -= double(terms[i].x.numel()) + double(terms[j].x.numel());
      if (growth < least) best = {i, j};
      least = std::min(least, growth);
    }
  return best;
}

// An equation as the user wrote it, which every complaint quotes.
struct Equation {
  const std::string& text;
  Sizes sizes = {};  // of the labels met so far

  template <class... Parts> void require(bool fine, ErrorKind kind, const Parts&... parts) const {
    volta::require(fine, kind, "einsum", "'", text, "': ", parts...);
  }

  // The labels of `term`, whose ellipsis stands for so many axes: those are numbered from the right.
  std::string labels(std::string term, int64_t hidden) const {
    const size_t dots = term.find("...");
    if (dots != std::string::npos) term.erase(dots, 3);
    require(term.find("...") == std::string::npos, ErrorKind::argument, "a term has two ellipses");
    for (char c : term) require(is_letter(c), ErrorKind::argument, "unexpected character '", c, "'");
    for (int64_t i = 1; i <= hidden && dots != std::string::npos; ++i) term.insert(dots, 1, char(i));
    return term;
  }

  // x with its labels; one that is used twice means the diagonal.
  Factor labelled(const std::string& term, const Tensor& x) {
    const int64_t named = int64_t(term.size()) - (term.find("...") == std::string::npos ? 0 : 3);
    Factor t{x, labels(term, x.dim() - named)};
    require(int64_t(t.labels.size()) == x.dim(), ErrorKind::shape, named, " labels for a tensor of shape ", x);
    for (size_t i = 0; i < t.labels.size();) {
      const size_t twin = t.labels.find(t.labels[i], i + 1);
      const int64_t n = t.x.size(int64_t(i));
      if (twin == std::string::npos) {
        note_size(t.labels[i++], n);
        continue;
      }
      const char label = t.labels[i];
      const int64_t m = t.x.size(int64_t(twin));
      require(n == m, ErrorKind::shape, quoted(label), " stands for sizes ", n, " and ", m, " of shape ", t.x);
      t.x = t.x.diagonal(0, int64_t(i), int64_t(twin));
      t.labels.erase(twin, 1).erase(i, 1).push_back(label);
    }
    return t;
  }

  // Axes of size 1 repeat against others.
  void note_size(char label, int64_t n) {
    int64_t& known = sizes.try_emplace(label, n).first->second;
    require(n == 1 || known == 1 || known == n, ErrorKind::shape, quoted(label), " stands for sizes ", known, " and ",
            n);
    if (n != 1) known = n;
  }

  std::string output(const std::string& term) const {
    int hidden = 0;
    while (sizes.contains(char(hidden + 1))) ++hidden;
    const std::string out = labels(term, hidden);
    for (size_t i = 0; i < out.size(); ++i) {
      require(out.find(out[i]) == i, ErrorKind::argument, "the output names ", quoted(out[i]), " twice");
      require(sizes.contains(out[i]), ErrorKind::argument, "the output's ", quoted(out[i]), " is in no operand");
    }
    return out;
  }

  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static std::string quoted(char label) {
    return is_letter(label) ? "'" + std::string(1, label) + "'" : std::string("an axis of the ellipsis");
  }
};

// Without an arrow: the ellipsis, then every letter that occurs once, sorted.
std::string implicit_output(const std::string& inputs) {
  std::string output = inputs.find("...") == std::string::npos ? "" : "...";
  for (char c = 'A'; c <= 'z'; ++c)
    if (std::count(inputs.begin(), inputs.end(), c) == 1) output += c;
  return output;
}

}  // namespace

Tensor Plain::einsum(const std::string& text, const std::vector<Tensor>& operands) {
  const char* op = "einsum";
  Equation equation{text};
  std::string compact = text;
  std::erase(compact, ' ');
  const size_t arrow = compact.find("->");
  const std::string left = compact.substr(0, arrow);
  const auto count = size_t(std::count(left.begin(), left.end(), ',')) + 1;
  equation.require(!operands.empty(), ErrorKind::argument, "no operands");
  equation.require(count == operands.size(), ErrorKind::argument, "describes ", count, " operands, got ",
                   operands.size());
  for (const Tensor& x : operands) common_device(operands[0], x, op);
  const DType dtype = result_type(std::vector<Operand>(operands.begin(), operands.end()), op);
  equation.require(dtype != boolean, ErrorKind::dtype, "is not defined for booleans");

  std::vector<Factor> terms;
  std::istringstream list(left + ",");
  for (std::string term; std::getline(list, term, ',');)
    terms.push_back(equation.labelled(term, operands[terms.size()]));
  const std::string output =
      equation.output(arrow == std::string::npos ? implicit_output(left) : compact.substr(arrow + 2));
  while (terms.size() > 1) {
    const std::pair pair = cheapest(terms, output, equation.sizes);
    const size_t i = pair.first, j = pair.second;
    terms[i] = blamed_on(op, [&] { return contract(terms[i], terms[j], needed(terms, i, j, output)); });
    terms.erase(terms.begin() + ptrdiff_t(j));
  }
  return permuted(reduced(terms[0], "", output), output).to(dtype);
}

// The paired axes side by side, as the inner axis of one matrix product.
Tensor Plain::tensordot(const Tensor& x, const Tensor& other, const Ints& pairs_x, const Ints& pairs_other) {
  const char* op = "tensordot";
  const std::vector<int64_t>&dims_x = pairs_x, &dims_other = pairs_other;
  common_device(x, other, op);
  const int count = int(dims_x.size());
  require(dims_x.size() == dims_other.size(), ErrorKind::argument, op, count, " axes are paired with ",
          dims_other.size());
  for (int64_t a : dims_x) axis_of(x, a, op, 1);
  for (int64_t b : dims_other) axis_of(other, b, op, 1);
  normalize_axes(dims_x, x.shape(), op);
  normalize_axes(dims_other, other.shape(), op);
  Shape last, first;
  for (int i = 0; i < count; ++i) {
    const int64_t a = dims_x[size_t(i)], b = dims_other[size_t(i)], n = x.size(a), m = other.size(b);
    require(n == m, ErrorKind::shape, op, x, " x ", other, ": axes ", a, " and ", b, " have sizes ", n, " and ", m);
    last.push_back(i - count);
    first.push_back(i);
  }
  const Operand operands[] = {x, other};
  product_dtype(operands, op);
  const Tensor a = x.movedim(dims_x, last), b = other.movedim(dims_other, first);
  const Shape rows = spliced(a.shape(), int(a.dim()) - count, count, {}), columns = spliced(b.shape(), 0, count, {});
  const int64_t inner = spliced(b.shape(), count, columns.size(), {}).numel();
  const Shape shape = blamed_on(op, [&] { return joined(rows, columns); });
  return matmul(a.reshape({rows.numel(), inner}), b.reshape({inner, columns.numel()})).reshape(shape);
}

Tensor Plain::tensordot(const Tensor& x, const Tensor& other, int64_t dims) {
  const int64_t most = std::min(x.checked("tensordot").dim(), other.checked("tensordot").dim());
  require(dims >= 0 && dims <= most, ErrorKind::argument, "tensordot", x, " x ", other, ": ", dims,
          " axes cannot be contracted");
  std::vector<int64_t> last, first;
  for (int64_t i = 0; i < dims; ++i) {
    last.push_back(x.dim() - dims + i);
    first.push_back(i);
  }
  return tensordot(x, other, last, first);
}

Tensor Plain::inner(const Tensor& x, const Tensor& other) {
  const char* op = "inner";
  common_device(x, other, op);
  return blamed_on(op, [&] {
    if (x.dim() > 0 && other.dim() > 0) return tensordot(x, other, {x.dim() - 1}, {other.dim() - 1});
    const Operand operands[] = {x, other};
    product_dtype(operands, op);
    return x * other;
  });
}

Tensor outer(const Tensor& x, const Tensor& other) {
  const char* op = "outer";
  common_device(x, other, op);
  require(x.dim() == 1 && other.dim() == 1, ErrorKind::shape, op, x, " x ", other, ": needs two vectors");
  checked_numel({x.numel(), other.numel()}, op);
  return mul(x.unsqueeze(1), other);
}

Tensor kron(const Tensor& x, const Tensor& other) {
  const char* op = "kron";
  common_device(x, other, op);
  const int rank = int(std::max(x.dim(), other.dim()));
  require(2 * rank <= Shape::max_rank, ErrorKind::shape, op, x, " x ", other, ": more than 6 axes are not supported");
  const auto sizes = [&](const Tensor& t) { return joined(Shape::filled(rank - int(t.dim()), 1), t.shape()); };
  const Shape n = sizes(x), m = sizes(other);
  Shape wide_x, wide_other, shape;
  for (int i = 0; i < rank; ++i) {
    wide_x = joined(wide_x, {n[i], 1});
    wide_other = joined(wide_other, {1, m[i]});
    shape.push_back((Checked(n[i]) * m[i]).value(op));
  }
  return mul(x.reshape(wide_x), other.reshape(wide_other)).reshape(shape);
}

Tensor Plain::trace(const Tensor& x) {
  require(x.checked("trace").dim() == 2, ErrorKind::shape, "trace", "needs a matrix, got shape ", x);
  return x.diagonal().sum();
}

Tensor cross(const Tensor& x, const Tensor& other, int64_t dim) {
  const char* op = "cross";
  common_device(x, other, op);
  require(x.dim() == other.dim() && x.dim() > 0, ErrorKind::shape, op, x, " x ", other,
          ": needs as many axes in both, at least one");
  const int axis = axis_of(x, dim, op);
  require(x.size(axis) == 3 && other.size(axis) == 3, ErrorKind::shape, op, x, " x ", other, ": axis ", axis,
          " must have size 3 in both");
  broadcast_shapes(x.shape(), other.shape(), op);
  const Operand both[] = {x, other};
  product_dtype(both, op);
  const auto term = [&](int64_t i, int64_t j) { return mul(x.narrow(axis, i, 1), other.narrow(axis, j, 1)); };
  return cat({sub(term(1, 2), term(2, 1)), sub(term(2, 0), term(0, 2)), sub(term(0, 1), term(1, 0))}, axis);
}

}  // namespace volta
