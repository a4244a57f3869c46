// L-BFGS: directions from the last changes of the gradient, and a line search for the strong Wolfe conditions.
#include <algorithm>
#include <climits>
#include <cmath>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>
#include <volta/optim/algorithms.h>

namespace volta::optim {
namespace {

double product(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }
double largest(const Tensor& x) { return max(abs(x)).item<double>(); }

// Where the cubic through two points with these values and slopes is least, within bounds.
template <class Point> double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const auto& [left, right] = a.t <= b.t ? std::tie(a, b) : std::tie(b, a);
  const double d1 = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.t - right.t);
  const double square = d1 * d1 - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

}  // namespace

LBFGS::LBFGS(Params params, const Options& o) : Optimizer("LBFGS", std::move(params), {.lr = o.lr}), options_(o) {
  if (groups_.size() != 1) throw_error("takes one group of parameters");
  if (o.max_iter < 1 || o.history_size < 1) throw_error("max_iter and history_size must be at least 1");
  if (o.max_eval < 0) throw_error("max_eval must be at least 0, not " + std::to_string(o.max_eval));
  require_number("tolerance_grad", o.tolerance_grad), require_number("tolerance_change", o.tolerance_change);
  if (o.strong_wolfe) options_.line_search_fn = LineSearch::strong_wolfe;
  options_.line_search_fn.of("LBFGS", "line_search_fn");
  save_setting("tolerance_grad", &options_.tolerance_grad);
  save_setting("tolerance_change", &options_.tolerance_change);
}

void LBFGS::step() { throw_error("step needs a closure that computes the loss again"); }

Tensor LBFGS::gather_gradient() const {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < groups_[0].params.size(); ++i) {
    const Tensor& p = groups_[0].params[i];
    const std::optional<Tensor> g = p.grad();
    if (!g) check_used(p, 0, i);
    parts.push_back(g ? g->detach().reshape({-1}) : zeros({p.numel()}, {.dtype = p.dtype(), .device = p.device()}));
  }
  return cat(parts);
}

int64_t LBFGS::numel() const {
  int64_t n = 0;
  for (const Tensor& p : groups_[0].params) n += p.numel();
  return n;
}

void LBFGS::forget() {
  iterations_ = 0;
  scale_ = 1;
  steps_.clear();
  changes_.clear();
}

// Parameters that were assigned other shapes start anew; moved to another dtype or device they take the history along.
void LBFGS::follow(const Tensor& gradient) {
  if (iterations_ == 0) return;
  if (direction_.numel() != gradient.numel()) return forget();
  const auto moved = [&](Tensor& x) { x = x.to(gradient.device()).to(gradient.dtype()); };
  moved(direction_), moved(previous_gradient_);
  for (Tensor& x : steps_) moved(x);
  for (Tensor& x : changes_) moved(x);
}

void LBFGS::move(double by, const Tensor& direction) const {
  int64_t begin = 0;
  for (const Tensor& p : groups_[0].params) {
    p.detach().add_(by * direction.narrow(0, begin, p.numel()).reshape(p.shape()));
    begin += p.numel();
  }
}

// -H g, where H begins as a multiple of the identity and takes in the remembered changes (the two-loop recursion).
Tensor LBFGS::next_direction(const Tensor& gradient) {
  if (iterations_ == 1) return -gradient;
  const Tensor change = gradient - previous_gradient_, step = direction_ * t_;
  const double curvature = product(change, step);
  if (curvature > 1e-10) {
    while (int(steps_.size()) >= options_.history_size) {  // more where a longer history was loaded
      steps_.erase(steps_.begin());
      changes_.erase(changes_.begin());
    }
    steps_.push_back(step);
    changes_.push_back(change);
    scale_ = curvature / product(change, change);
  }
  Tensor d = -gradient;
  std::vector<double> shares(steps_.size()), inverse(steps_.size());
  for (size_t i = steps_.size(); i-- > 0;) {
    inverse[i] = 1 / product(changes_[i], steps_[i]);
    shares[i] = product(steps_[i], d) * inverse[i];
    d = d - shares[i] * changes_[i];
  }
  d = d * scale_;
  for (size_t i = 0; i < steps_.size(); ++i) d = d + (shares[i] - product(changes_[i], d) * inverse[i]) * steps_[i];
  return d;
}

// Doubles the step until a minimum is bracketed, then closes in on it.
LBFGS::Point LBFGS::search(const Evaluate& at, Point start, double t, int evaluations) const {
  constexpr double enough = 1e-4, flat = 0.9;
  const int most = std::min(25, evaluations - 1);  // after the first
  const double size = largest(direction_);
  const auto too_high = [&](const Point& p) { return p.loss > start.loss + enough * p.t * start.slope; };
  const auto is_flat = [&](const Point& p) { return std::abs(p.slope) <= -flat * start.slope; };

  Point before = start, now = at(t);
  int tries = 0;
  for (; tries < most; ++tries) {
    if (too_high(now) || (tries > 1 && now.loss >= before.loss)) break;
    if (is_flat(now)) return now;
    if (now.slope >= 0) break;
    const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = now;
    now = at(next);
  }

  Point low = before, high = now;
  if (high.loss < low.loss) std::swap(low, high);
  for (bool cramped = false; tries < most; ++tries) {
    const auto [left, right] = std::minmax({low.t, high.t});
    if ((right - left) * size < options_.tolerance_change) break;
    double next = cubic_minimum(low, high, left, right);
    const double edge = 0.1 * (right - left);  // twice in a row close to an end of the bracket is not progress
    const bool close = std::min(right - next, next - left) < edge;
    const bool move_in = close && (cramped || next >= right || next <= left);
    if (move_in) next = std::abs(next - right) < std::abs(next - left) ? right - edge : left + edge;
    cramped = close && !move_in;
    const Point point = at(next);
    if (too_high(point) || point.loss >= low.loss) {
      high = point;
      if (high.loss < low.loss) std::swap(low, high);
      continue;
    }
    const bool done = is_flat(point);
    if (!done && point.slope * (high.t - low.t) >= 0) high = low;
    low = point;
    if (done) break;
  }
  return low;
}

Tensor LBFGS::step(const Closure& closure) {
  if (!closure) throw_error("step was given an empty function");
  check_groups();
  const NoGrad off;
  const int most =
      options_.max_eval ? options_.max_eval : int(std::min<int64_t>(int64_t(options_.max_iter) * 5 / 4, INT_MAX));
  int evaluations = 0;
  const auto evaluate = [&] {
    const EnableGrad on;
    ++evaluations;
    return closure();
  };
  const Tensor first = evaluate();
  double loss = first.item<double>();
  Tensor gradient = gather_gradient();
  if (largest(gradient) <= options_.tolerance_grad) return first;
  follow(gradient);

  for (int64_t i = 1; i <= options_.max_iter; ++i) {
    ++iterations_;
    direction_ = next_direction(gradient);
    previous_gradient_ = gradient.clone();
    const double before = loss, slope = product(gradient, direction_), lr = groups_[0].lr;
    t_ = iterations_ == 1 ? std::min(1., 1 / sum(abs(gradient)).item<double>()) * lr : lr;
    if (!(slope <= -options_.tolerance_change)) break;  // not a number: no step leads back

    if (options_.line_search_fn == LineSearch::strong_wolfe) {
      std::vector<Tensor> origin;
      for (const Tensor& p : groups_[0].params) origin.push_back(p.detach().clone());
      const auto restore = [&] {
        for (size_t k = 0; k < origin.size(); ++k) groups_[0].params[k].detach().copy_(origin[k]);
      };
      const auto at = [&](double t) {
        move(t, direction_);
        const double value = evaluate().item<double>();
        Tensor there = gather_gradient().clone();
        restore();
        const double along = product(there, direction_);
        return Point{t, value, std::move(there), along};
      };
      // Without a bound of its own a search ends by itself, and has one try in any case.
      const int tries = options_.max_eval ? std::max(1, most - evaluations) : INT_MAX;
      const Point found = search(at, {0, loss, gradient, slope}, t_, tries);
      loss = found.loss;
      gradient = found.gradient;
      t_ = found.t;
      move(t_, direction_);
    } else {
      move(t_, direction_);
      if (i < options_.max_iter) {
        loss = evaluate().item<double>();
        gradient = gather_gradient();
      }
    }
    if (evaluations >= most || largest(gradient) <= options_.tolerance_grad) break;
    if (largest(direction_) * t_ <= options_.tolerance_change) break;
    if (i < options_.max_iter && std::abs(loss - before) < options_.tolerance_change) break;
  }
  evaluations_ += evaluations;
  return first;
}

std::map<std::string, Tensor> LBFGS::shared_state() const {
  if (iterations_ == 0) return {};
  std::map<std::string, Tensor> saved{{"n_iter", tensor<int64_t>(iterations_, {.device = Device()})},
                                      {"func_evals", tensor<int64_t>(evaluations_, {.device = Device()})},
                                      {"t", tensor<double>(t_, {.device = Device()})},
                                      {"H_diag", tensor<double>(scale_, {.device = Device()})},
                                      {"d", direction_.clone()},
                                      {"prev_flat_grad", previous_gradient_.clone()}};
  if (steps_.empty()) return saved;
  saved["old_stps"] = stack(steps_);
  saved["old_dirs"] = stack(changes_);
  return saved;
}

void LBFGS::check_shared_state(const std::map<std::string, Tensor>& saved) const {
  if (saved.empty()) return;
  const auto need = [&](const char* key) {
    const auto found = saved.find(key);
    if (found == saved.end() || !found->second.defined()) throw_error("the saved state lacks " + std::string(key));
    return found->second;
  };
  const auto wrong_shape = [&](const std::string& key, const Tensor& x) {
    throw_error("saved " + key + " has shape " + x.shape().str() + ", the parameters have " + std::to_string(numel()) +
                " elements");
  };
  for (const char* key : {"n_iter", "func_evals", "t", "H_diag"}) {
    const Tensor x = need(key);
    if (x.numel() != 1) throw_error("saved " + std::string(key) + " is not one number");
    const bool counts = std::string_view(key) == "n_iter" || std::string_view(key) == "func_evals";
    const double value = x.item<double>();
    if (counts && !(value >= 0 && value <= 0x1p53))
      throw_error("saved " + std::string(key) + " is " + std::to_string(value));
  }
  for (const char* key : {"d", "prev_flat_grad"})
    if (const Tensor x = need(key); x.shape() != Shape{numel()}) wrong_shape(key, x);
  if (!saved.contains("old_stps") && !saved.contains("old_dirs")) return;
  const Tensor steps = need("old_stps"), changes = need("old_dirs");
  for (const auto& [key, x] : {std::pair("old_stps", steps), std::pair("old_dirs", changes)})
    if (x.dim() != 2 || x.size(1) != numel()) wrong_shape(key, x);
  if (steps.size(0) != changes.size(0))
    throw_error("saved old_stps and old_dirs have " + std::to_string(steps.size(0)) + " and " +
                std::to_string(changes.size(0)) + " rows");
}

void LBFGS::load_shared_state(const std::map<std::string, Tensor>& saved) {
  forget();
  evaluations_ = 0;
  if (saved.empty()) return;
  iterations_ = saved.at("n_iter").item<int64_t>();
  evaluations_ = saved.at("func_evals").item<int64_t>();
  t_ = saved.at("t").item<double>();
  scale_ = saved.at("H_diag").item<double>();
  direction_ = saved.at("d").detach().clone();
  previous_gradient_ = saved.at("prev_flat_grad").detach().clone();
  if (!saved.contains("old_stps")) return;
  steps_ = unbind(saved.at("old_stps").detach().clone());
  changes_ = unbind(saved.at("old_dirs").detach().clone());
}

}  // namespace volta::optim
