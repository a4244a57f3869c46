// Einstein summation: parses the equation, then contracts the operands from left to right with matrix products.
#include <algorithm>
#include <array>
#include <map>

#include <volta/ops.h>

#include "core/impl.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

// Axes carry labels: a letter's code, or for the axes of an ellipsis a number from `first_hidden` on.
using Labels = std::vector<int>;
constexpr int first_hidden = 1000;

struct Factor {
  Tensor tensor;
  Labels labels;
};

struct Equation {
  const std::string& text;
  [[noreturn]] void refuse(const std::string& why, Error::Kind kind = Error::Kind::argument) const {
    throw Error(kind, "einsum", "'" + text + "': " + why);
  }
};

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
int place(const Labels& labels, int label) {
  return int(std::find(labels.begin(), labels.end(), label) - labels.begin());
}
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string label_text(int label) {
  return label < first_hidden ? "'" + std::string(1, char(label)) + "'" : std::string("an axis of the ellipsis");
}

std::string without_spaces(const std::string& text) {
  std::string s;
  std::copy_if(text.begin(), text.end(), std::back_inserter(s), [](char c) { return c != ' '; });
  return s;
}

std::vector<std::string> split_at_commas(const std::string& s) {
  std::vector<std::string> parts{""};
  for (char c : s) {
    if (c == ',') parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

// Letters of one operand or of the output; -1 stands for the ellipsis.
Labels parse_term(const Equation& equation, const std::string& s) {
  Labels labels;
  for (size_t i = 0; i < s.size(); ++i) {
    if (is_letter(s[i])) {
      labels.push_back(s[i]);
    } else if (s.compare(i, 3, "...") == 0) {
      if (has(labels, -1)) equation.refuse("'" + s + "' has two ellipses");
      labels.push_back(-1);
      i += 2;
    } else {
      equation.refuse(std::string("unexpected character '") + s[i] + "'");
    }
  }
  return labels;
}

// Puts hidden labels, aligned at the right among operands, in place of the ellipsis.
Labels with_ellipsis(const Labels& labels, int axes, int most) {
  Labels out;
  for (int l : labels) {
    if (l != -1) out.push_back(l);
    else
      for (int i = 0; i < axes; ++i) out.push_back(first_hidden + most - axes + i);
  }
  return out;
}

int ellipsis_axes(const Equation& equation, const Labels& labels, const Tensor& x) {
  const bool open = has(labels, -1);
  const int named = int(labels.size()) - open, rank = int(x.dim());
  if (open ? named > rank : named != rank)
    equation.refuse(std::to_string(named) + " labels for a tensor of shape " + x.shape().str(), Error::Kind::shape);
  return rank - named;
}

// A label used twice in one operand means its diagonal.
Factor take_diagonals(const Equation& equation, Factor t) {
  for (size_t i = 0; i < t.labels.size(); ++i)
    for (size_t j = t.labels.size() - 1; j > i; --j) {
      if (t.labels[i] != t.labels[j]) continue;
      const int label = t.labels[i];
      const int64_t n = t.tensor.size(int64_t(i)), m = t.tensor.size(int64_t(j));
      if (n != m)
        equation.refuse(label_text(label) + " stands for sizes " + std::to_string(n) + " and " + std::to_string(m) +
                            " of shape " + t.tensor.shape().str(),
                        Error::Kind::shape);
      t.tensor = t.tensor.diagonal(0, int64_t(i), int64_t(j));
      t.labels.erase(t.labels.begin() + ptrdiff_t(j));
      t.labels.erase(t.labels.begin() + ptrdiff_t(i));
      t.labels.push_back(label);
      return take_diagonals(equation, std::move(t));
    }
  return t;
}

void check_sizes(const Equation& equation, const std::vector<Factor>& terms) {
  std::map<int, int64_t> sizes;
  for (const Factor& t : terms)
    for (size_t i = 0; i < t.labels.size(); ++i) {
      const int64_t n = t.tensor.size(int64_t(i));
      int64_t& known = sizes.try_emplace(t.labels[i], 1).first->second;
      if (n != 1 && known != 1 && n != known)
        equation.refuse(
            label_text(t.labels[i]) + " stands for sizes " + std::to_string(known) + " and " + std::to_string(n),
            Error::Kind::shape);
      if (n != 1) known = n;
    }
}

// Without an arrow: the ellipsis, then every letter that occurs once, sorted.
Labels implicit_output(const std::vector<Labels>& inputs) {
  std::map<int, int> uses;
  bool open = false;
  for (const Labels& labels : inputs)
    for (int l : labels) {
      if (l == -1) open = true;
      else ++uses[l];
    }
  Labels out;
  if (open) out.push_back(-1);
  for (const auto& [label, count] : uses)
    if (count == 1) out.push_back(label);
  return out;
}

// Sums over every axis whose label is not to be kept.
template <class Keep> Factor summed(Factor t, Keep keep) {
  std::vector<int64_t> axes;
  Labels rest;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (keep(t.labels[i])) rest.push_back(t.labels[i]);
    else axes.push_back(int64_t(i));
  }
  if (axes.empty()) return t;
  return {t.tensor.sum(axes), rest};
}

// A size-1 axis against an axis of the same label in the other operand merely repeats: drop it.
Factor without_repeats(Factor t, const Labels& other) {
  for (size_t i = t.labels.size(); i-- > 0;) {
    if (t.tensor.size(int64_t(i)) != 1 || !has(other, t.labels[i])) continue;
    t.tensor = t.tensor.squeeze(int64_t(i));
    t.labels.erase(t.labels.begin() + ptrdiff_t(i));
  }
  return t;
}

Tensor permuted(const Factor& t, const Labels& order) {
  Shape axes;
  for (int l : order) axes.push_back(place(t.labels, l));
  return t.tensor.permute(axes);
}

Shape sizes_of(const Factor& t, const Labels& labels) {
  Shape s;
  for (int l : labels) s.push_back(t.tensor.size(place(t.labels, l)));
  return s;
}

Labels joined(std::initializer_list<const Labels*> lists) {
  Labels all;
  for (const Labels* l : lists) all.insert(all.end(), l->begin(), l->end());
  return all;
}

Shape with_sizes(Shape s, std::initializer_list<int64_t> more) {
  for (int64_t n : more) s.push_back(n);
  return s;
}

// Labels of two operands by their role in the product.
struct Roles {
  Labels batch, contracted, left, right;
};

template <class Keep> Roles roles_of(const Factor& a, const Factor& b, Keep keep) {
  Roles r;
  for (int l : a.labels) {
    if (!has(b.labels, l)) r.left.push_back(l);
    else if (keep(l)) r.batch.push_back(l);
    else r.contracted.push_back(l);
  }
  for (int l : b.labels)
    if (!has(a.labels, l)) r.right.push_back(l);
  return r;
}

Tensor multiplied(const Factor& a, const Factor& b, const Roles& r) {
  const int left = int(r.left.size()), right = int(r.right.size());
  Shape shape = with_sizes(sizes_of(a, joined({&r.batch, &r.left})), {});
  for (int i = 0; i < right; ++i) shape.push_back(1);
  Shape other = sizes_of(b, r.batch);
  for (int i = 0; i < left; ++i) other.push_back(1);
  for (int64_t n : sizes_of(b, r.right)) other.push_back(n);
  return mul(permuted(a, joined({&r.batch, &r.left})).reshape(shape),
             permuted(b, joined({&r.batch, &r.right})).reshape(other));
}

// batch axes stay apart (the product walks them by stride), the rest become rows, columns and the inner axis.
Tensor contracted(const Factor& a, const Factor& b, const Roles& r) {
  const Shape batch = sizes_of(a, r.batch), rows = sizes_of(a, r.left), columns = sizes_of(b, r.right);
  const int64_t k = sizes_of(a, r.contracted).numel();
  const Tensor x =
      permuted(a, joined({&r.batch, &r.left, &r.contracted})).reshape(with_sizes(batch, {rows.numel(), k}));
  const Tensor y =
      permuted(b, joined({&r.batch, &r.contracted, &r.right})).reshape(with_sizes(batch, {k, columns.numel()}));
  Shape shape = batch;
  for (int64_t n : rows) shape.push_back(n);
  for (int64_t n : columns) shape.push_back(n);
  return matmul(x, y).reshape(shape);
}

template <class Keep> Factor contract(Factor a, Factor b, Keep keep) {
  a = without_repeats(std::move(a), b.labels);
  b = without_repeats(std::move(b), a.labels);
  a = summed(std::move(a), [&](int l) { return keep(l) || has(b.labels, l); });
  b = summed(std::move(b), [&](int l) { return keep(l) || has(a.labels, l); });
  const Roles r = roles_of(a, b, keep);
  return {r.contracted.empty() ? multiplied(a, b, r) : contracted(a, b, r), joined({&r.batch, &r.left, &r.right})};
}

void check_output(const Equation& equation, const Labels& output, const std::vector<Factor>& terms) {
  for (size_t i = 0; i < output.size(); ++i) {
    if (place(output, output[i]) != int(i)) equation.refuse("the output names " + label_text(output[i]) + " twice");
    if (std::none_of(terms.begin(), terms.end(), [&](const Factor& t) { return has(t.labels, output[i]); }))
      equation.refuse("the output's " + label_text(output[i]) + " is in no operand");
  }
}

DType checked_dtype(const Equation& equation, const std::vector<Tensor>& operands) {
  std::vector<Operand> list;
  for (const Tensor& x : operands) {
    common_device(operands[0], x.checked("einsum"), "einsum");
    list.emplace_back(x);
  }
  const DType dtype = result_type(list, "einsum");
  if (dtype == boolean) equation.refuse("is not defined for booleans", Error::Kind::dtype);
  return dtype;
}

}  // namespace

Tensor einsum(const std::string& text, const std::vector<Tensor>& operands) {
  const Equation equation{text};
  const std::string compact = without_spaces(text);
  const size_t arrow = compact.find("->");
  const std::vector<std::string> parts = split_at_commas(compact.substr(0, arrow));
  if (operands.empty()) equation.refuse("no operands");
  if (parts.size() != operands.size())
    equation.refuse("describes " + std::to_string(parts.size()) + " operands, got " + std::to_string(operands.size()));
  for (const Tensor& x : operands) x.checked("einsum");
  const DType dtype = checked_dtype(equation, operands);

  std::vector<Labels> inputs;
  std::vector<int> hidden;
  for (size_t i = 0; i < parts.size(); ++i) {
    inputs.push_back(parse_term(equation, parts[i]));
    hidden.push_back(ellipsis_axes(equation, inputs[i], operands[i]));
  }
  const int most = *std::max_element(hidden.begin(), hidden.end());
  const Labels output = with_ellipsis(
      arrow == std::string::npos ? implicit_output(inputs) : parse_term(equation, compact.substr(arrow + 2)), most,
      most);

  std::vector<Factor> terms;
  for (size_t i = 0; i < operands.size(); ++i)
    terms.push_back(take_diagonals(equation, {operands[i], with_ellipsis(inputs[i], hidden[i], most)}));
  check_sizes(equation, terms);
  check_output(equation, output, terms);

  Factor result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    const auto keep = [&](int label) {
      return has(output, label) || std::any_of(terms.begin() + ptrdiff_t(i) + 1, terms.end(),
                                               [&](const Factor& t) { return has(t.labels, label); });
    };
    result = contract(std::move(result), terms[i], keep);
  }
  result = summed(std::move(result), [&](int label) { return has(output, label); });
  return permuted(result, output).to(dtype);
}

}  // namespace volta
