// Connectionist temporal classification: the forward recursion over blank-separated labels, in logarithms.
#include <algorithm>
#include <cmath>

#include "ops/loss.h"
#include "volta/create.h"
#include "volta/plain.h"

namespace volta {
namespace {

constexpr double impossible = -1e30;  // log 0 that can be subtracted from itself

struct Alignment {
  int64_t steps, batch, classes, longest;
  std::vector<int64_t> labels;  // [batch, 2 longest + 1]: blank, first, blank, second, …, blank
};

constexpr const char* op = "ctc_loss";

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t most, const char* what) {
  require(int64_t(lengths.size()) == batch, ErrorKind::shape, op, lengths.size(), " ", what, " for a batch of ", batch);
  for (int64_t n : lengths) require(n >= 0 && n <= most, ErrorKind::argument, op, what, " of ", n, ", not 0 to ", most);
}

Alignment prepare(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                  const std::vector<int64_t>& target_lengths, int64_t blank) {
  require_floating(log_probs, op);
  require(log_probs.dim() == 3, ErrorKind::shape, op, "log_probs ", log_probs, ", not [T, N, C] or [T, C]");
  require(is_integral(targets.checked(op).dtype()), ErrorKind::dtype, op, "targets must be integers");
  Alignment p{log_probs.size(0), log_probs.size(1), log_probs.size(2), 0, {}};
  require(blank >= 0 && blank < p.classes, ErrorKind::index, op, "blank ", blank, " is not one of the ", p.classes,
          " classes");
  const bool rows = targets.dim() == 2;
  require(rows ? targets.size(0) == p.batch : targets.dim() == 1, ErrorKind::shape, op, "targets ", targets,
          ", not [N, S] or [sum of lengths]");
  check_lengths(input_lengths, p.batch, p.steps, "input_lengths");
  check_lengths(target_lengths, p.batch, targets.size(-1), "target_lengths");
  int64_t total = 0;
  for (int64_t n : target_lengths) {
    p.longest = std::max(p.longest, n);
    total += n;
  }
  require(rows || total == targets.numel(), ErrorKind::shape, op, targets.numel(),
          " targets, target_lengths add up to ", total);

  const std::vector<int64_t> all = blamed_on(op, [&] { return targets.to(i64).to("cpu").to_vector<int64_t>(); });
  const int64_t width = 2 * p.longest + 1;
  p.labels.assign(size_t(p.batch * width), blank);
  int64_t begin = 0;
  for (int64_t n = 0; n < p.batch; ++n) {
    if (rows) begin = n * targets.size(1);
    for (int64_t s = 0; s < target_lengths[size_t(n)]; ++s) {
      const int64_t label = all[size_t(begin + s)];
      require(label >= 0 && label < p.classes, ErrorKind::index, op, "label ", label, " is not one of the ", p.classes,
              " classes");
      p.labels[size_t(n * width + 2 * s + 1)] = label;
    }
    begin += target_lengths[size_t(n)];
  }
  return p;
}

// The columns moved right by `by`, impossible ones coming in.
Tensor shifted(const Tensor& x, int64_t by) {
  if (x.size(1) < by) return full_like(x, impossible);
  return pad(x.narrow(1, 0, x.size(1) - by), {by, 0}, {.value = impossible});
}

}  // namespace

Tensor Plain::ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                       const std::vector<int64_t>& target_lengths, const CTCLossOptions& o) {
  loss::reduction(o.reduction, op);
  if (log_probs.checked(op).dim() == 2) {
    const Tensor loss = ctc_loss(log_probs.unsqueeze(1), targets, input_lengths, target_lengths, o);
    return o.reduction == Reduce::none ? loss.squeeze(0) : loss;
  }
  const Alignment p = prepare(log_probs, targets, input_lengths, target_lengths, o.blank);
  const Device device = log_probs.device();
  const int64_t width = 2 * p.longest + 1;
  const Tensor labels = tensor(p.labels, {p.batch, width}).to(device);
  const Tensor place = arange(width).to(device);
  // From two places back one may come to a label that is neither blank nor the one before.
  const Tensor before = pad(labels, {2, 0}, {.value = double(o.blank)}).narrow(1, 0, width);
  const Tensor skips = (labels != o.blank) & (labels != before);
  const Tensor inputs = tensor(input_lengths).to(device).unsqueeze(1);
  const Tensor ends = tensor(target_lengths).to(device).unsqueeze(1) * 2;

  const Tensor scores = clamp_min(log_probs.to(promote(log_probs.dtype(), f32)), impossible);
  const auto emitted = [&](int64_t t) { return gather(scores.select(0, t), 1, labels); };
  // Log probability of all ways to have come to each place; before the first step one stands left of the first two.
  Tensor at = where(place == 0, zeros({p.batch, 1}, {.dtype = scores.dtype(), .device = device}), impossible);
  for (int64_t t = 0; t < p.steps; ++t) {
    const Tensor stay_or_next = logaddexp(at, shifted(at, 1));
    const Tensor skip = where(skips, shifted(at, 2), impossible);
    const Tensor next = (t == 0 ? where(place < 2, stay_or_next, impossible) : logaddexp(stay_or_next, skip));
    at = where(inputs > t, clamp_min(next + emitted(t), impossible), at);
  }
  const Tensor last = where((place == ends) | (place == ends - 1), at, impossible);
  Tensor losses = -logsumexp(last, 1);
  losses = where(losses > -impossible / 2, o.zero_infinity ? 0. : INFINITY, losses).to(log_probs.dtype());
  if (o.reduction != Reduce::mean) return loss::reduced(losses, o.reduction);
  return mean(losses / clamp_min(ends.squeeze(1) / 2, 1).to(losses.dtype()));
}

}  // namespace volta
