#include "source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace volta::fuzz {

uint64_t Source::bits() {
  if (!begun_) {
    begun_ = true;
    floating_ = one_of(std::vector<DType>{f32, f32, f32, f64, f64, f16, bf16});
  }
  if (bytes_.data()) {
    uint64_t x = 0;
    for (int i = 0; i < 4 && at_ < bytes_.size(); ++i) x = x << 8 | bytes_[at_++];
    return x;
  }
  uint64_t z = state_ += 0x9e3779b97f4a7c15;  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void Source::note(const std::string& text) {
  story_ += (story_.empty() ? "" : ", ") + text;
  if (place_) std::snprintf(place_, room_, "%s", story_.c_str());
}

int64_t Source::size() {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  static const std::vector<int64_t> extremes{0,
                                             1,
                                             -1,
                                             -2,
                                             255,
                                             256,
                                             (1LL << 31) - 1,
                                             1LL << 31,
                                             1LL << 32,
                                             (1LL << 32) + 1,
                                             -(1LL << 31),
                                             1LL << 45,
                                             (1LL << 45) + 1,
                                             1LL << 54,
                                             1LL << 61,
                                             1LL << 62,
                                             -(1LL << 62),
                                             most,
                                             most - 1,
                                             most / 2,
                                             least,
                                             least + 1};
  const int64_t n = chance(65) ? within(0, 5) : chance(30) ? within(6, 40) : one_of(extremes);
  note(std::to_string(n));
  return n;
}
int64_t Source::few(int64_t least) {
  if (chance(5)) return size();
  const int64_t n = within(least, least + 3);
  note(std::to_string(n));
  return n;
}
int64_t Source::axis() {
  if (chance(10)) return size();
  const int64_t rank = shapes_.empty() ? 3 : shapes_[0].size(), n = within(-rank - 1, rank);
  note(std::to_string(n));
  return n;
}
double Source::number() {
  using limits = std::numeric_limits<double>;
  static const std::vector<double> special{limits::quiet_NaN(),
                                           limits::infinity(),
                                           -limits::infinity(),
                                           limits::denorm_min(),
                                           limits::min(),
                                           limits::max(),
                                           limits::lowest(),
                                           1e-45,
                                           3e38,
                                           65504,
                                           -65505,
                                           0x1p31,
                                           0x1p62,
                                           0x1p63,
                                           -0x1p63,
                                           0x1p64,
                                           -0.0,
                                           0,
                                           1,
                                           -1,
                                           0.5,
                                           1e-300};
  const double x = chance(75) ? double(within(-400, 400)) / 100 : one_of(special);
  note(std::to_string(x));
  return x;
}
double Source::probability() {
  if (chance(10)) return number();
  const double p = double(within(0, 8)) / 8;
  note(std::to_string(p));
  return p;
}
DType Source::dtype() {
  const DType d = chance(65) ? floating_ : DType(within(0, 12));
  return d;
}

namespace {
// Without overflow; the products from left to right count, as the sizes of 0-element tensors may be anything.
double elements(const Shape& shape) {
  double n = 1;
  for (const int64_t size : shape) n *= double(size);
  return n;
}
}  // namespace

Shape Source::shape() {
  static const std::vector<int64_t> lengths{0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  if (!shapes_.empty() && chance(70)) {
    Shape s = shapes_[size_t(within(0, int64_t(shapes_.size()) - 1))];
    if (chance(25) && !s.empty()) s[int(within(0, s.size() - 1))] = chance(50) ? 1 : one_of(lengths);
    if (chance(15) && !s.empty()) s.erase(int(within(0, s.size() - 1)));
    if (elements(s) <= 4096) return s;
  }
  Shape s;
  if (chance(2)) {  // none, but large
    s = Shape{0, within(0, 1) ? int64_t(1) << 61 : 5, 2};
  } else {
    for (int64_t rank = chance(93) ? within(0, 4) : within(5, 12); rank > 0; --rank) {
      s.push_back(one_of(lengths));
      if (s.numel() > 2048) s[s.size() - 1] = 1;
    }
  }
  shapes_.push_back(s);
  return s;
}
Shape Source::sizes() {
  Shape s;
  for (int64_t rank = within(0, 5); rank > 0; --rank) s.push_back(size());
  return s;
}
PerAxis Source::per_axis(int axes, int64_t least) {
  if (chance(50)) return few(least);
  Shape s;
  for (int64_t n = chance(95) ? axes : within(0, 5); n > 0; --n) s.push_back(few(least));
  return s;
}
std::vector<int64_t> Source::list() {
  std::vector<int64_t> values;
  for (int64_t n = within(0, 5); n > 0; --n) values.push_back(chance(50) ? axis() : size());
  return values;
}

Tensor Source::filled(const Shape& shape, DType dtype) {
  const int64_t n = shape.numel();
  const bool odd = chance(15), large = chance(10);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) {
    v = double(within(-300, 300)) / 100;
    if (odd && chance(30)) {
      const std::string before = story_;
      v = number();
      story_ = before;
    }
    if (large) v *= 1e30;
  }
  if (odd) note("odd numbers");
  return volta::tensor(values, shape).to(dtype);
}

Tensor Source::laid_out(const Shape& shape, DType dtype) {
  const int rank = shape.size();
  if (rank == 0 || shape.numel() == 0 || chance(45)) return filled(shape, dtype);
  const int i = int(within(0, rank - 1)), j = int(within(0, rank - 1));
  Shape s = shape;
  switch (within(0, 4)) {
    case 0: {
      note("transposed");
      std::swap(s[i], s[j]);
      return filled(s, dtype).transpose(i, j);
    }
    case 1: {
      note("every second");
      s[i] = 2 * s[i] + 1;
      return filled(s, dtype).narrow(i, 1, s[i] - 1).unflatten(i, {(s[i] - 1) / 2, 2}).select(i + 1, 0);
    }
    case 2: note("reversed"); return filled(s, dtype).flip({i});
    case 3: {
      note("part");
      s[i] += 3;
      return filled(s, dtype).narrow(i, 2, shape[i]);
    }
    default: {
      note("expanded");
      s[i] = 1;
      if (chance(30)) s[j] = 1;
      return filled(s, dtype).expand(shape);
    }
  }
}

Tensor Source::tensor(const Shape& wanted, DType dtype) {
  Shape shape = wanted;
  bool fits = true;
  for (const int64_t n : shape) fits = fits && n >= 0;
  if (!fits || elements(shape) > 1 << 16 || chance(3)) shape = this->shape();
  note(std::string(name(dtype)) + shape.str());
  shapes_.push_back(shape);
  Tensor x = laid_out(shape, dtype).detach();
  if (is_floating(dtype) && chance(60)) leaves_.push_back(x.requires_grad_());
  return x;
}
Tensor Source::tensor() {
  if (chance(1)) {
    note("undefined");
    return {};
  }
  return tensor(shape(), dtype());
}
Tensor Source::indices(const Shape& shape, int64_t below) {
  Shape s = shape;
  if (elements(s) > 4096 || chance(3)) s = this->shape();
  const DType type = chance(85) ? i64 : DType(within(0, 12));
  std::vector<int64_t> values(static_cast<size_t>(s.numel()));
  const bool wild = chance(8);
  for (int64_t& v : values) v = wild && chance(20) ? int64_t(bits()) : within(0, std::max<int64_t>(below, 1) - 1);
  note("indices " + std::string(name(type)) + s.str() + (wild ? " wild" : ""));
  return volta::tensor(values, s).to(type);
}
std::vector<Tensor> Source::tensors() {
  std::vector<Tensor> list;
  for (int64_t n = within(0, 4); n > 0; --n) list.push_back(tensor());
  return list;
}

const std::vector<Call>& all_calls() {
  static const std::vector<Call> calls = [] {
    std::vector<Call> list;
    add_ops(list), add_layers(list), add_modules(list), add_losses(list);
    return list;
  }();
  return calls;
}

namespace {

// A gradient that comes in as the graph hands them on: dense, expanded, transposed, reversed.
Tensor cotangent(const Tensor& y, Source& s) {
  const Options like{.dtype = y.dtype(), .device = y.device()};
  const int64_t rank = y.dim();
  if (rank == 0 || s.chance(30)) return full({}, 0.5, like).expand(y.shape());
  const Tensor g = ones(y.shape(), like);
  if (s.chance(30)) return g;
  const int64_t i = s.within(0, rank - 1);
  if (s.chance(40)) return y.numel() ? g.narrow(i, 0, 1).expand(y.shape()) : g;
  return s.chance(50) ? g.flip({int64_t(i)}) : g.transpose(i, 0).contiguous().transpose(i, 0);
}

}  // namespace

std::string run(const Call& call, Source& source, bool* gave_result) {
  try {
    const std::vector<Tensor> outputs = call.run(source);
    if (gave_result) *gave_result = true;
    for (const Tensor& y : outputs) {
      if (!y.defined() || !y.requires_grad() || y.numel() > 1 << 20) continue;
      const bool twice = source.chance(25);
      const std::vector<Tensor> leaves = source.leaves();
      const std::vector<Tensor> d =
          grad(std::vector<Tensor>{y}, leaves,
               {.grad_outputs = {cotangent(y, source)}, .create_graph = twice, .allow_unused = true});
      if (!twice) continue;
      for (const Tensor& g : d)
        if (g.defined() && g.requires_grad())
          (void)grad(std::vector<Tensor>{g}, leaves,
                     {.grad_outputs = {cotangent(g, source)}, .retain_graph = true, .allow_unused = true});
    }
  } catch (const Error& e) {
    return e.kind() == Error::Kind::internal ? std::string("internal error: ") + e.what() : "";
  } catch (const std::exception& e) {
    return std::string("foreign exception: ") + e.what();
  } catch (...) {
    return "foreign exception";
  }
  return "";
}

}  // namespace volta::fuzz
