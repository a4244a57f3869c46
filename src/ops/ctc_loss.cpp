// Connectionist temporal classification: the forward recursion over blank-separated labels, in logarithms.
#include <algorithm>
#include <cmath>

#include <volta/grad_mode.h>
#include "ops/loss.h"
#include "volta/create.h"

namespace volta {
namespace {

constexpr double impossible = -1e30;  // log 0 that can be subtracted from itself

struct Alignment {
  int64_t steps, batch, classes, longest;
  std::vector<int64_t> labels;  // [batch, 2 longest + 1]: blank, first, blank, second, …, blank
};

[[noreturn]] void throw_error(Error::Kind kind, const std::string& message) { throw Error(kind, "ctc_loss", message); }

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t most, const char* what) {
  if (int64_t(lengths.size()) != batch)
    throw_error(Error::Kind::shape,
                std::to_string(lengths.size()) + " " + what + " for a batch of " + std::to_string(batch));
  for (int64_t n : lengths)
    if (n < 0 || n > most)
      throw_error(Error::Kind::argument,
                  std::string(what) + " of " + std::to_string(n) + ", not 0 to " + std::to_string(most));
}

Alignment prepare(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                  const std::vector<int64_t>& target_lengths, int64_t blank) {
  loss::require_floats(log_probs, "ctc_loss");
  if (log_probs.dim() != 3) throw_error(Error::Kind::shape, "log_probs " + log_probs.shape().str() + ", not [T, N, C]");
  if (!is_integral(targets.checked("ctc_loss").dtype())) throw_error(Error::Kind::dtype, "targets must be integers");
  Alignment p{log_probs.size(0), log_probs.size(1), log_probs.size(2), 0, {}};
  if (blank < 0 || blank >= p.classes)
    throw_error(Error::Kind::index,
                "blank " + std::to_string(blank) + " is not one of the " + std::to_string(p.classes) + " classes");
  const bool rows = targets.dim() == 2;
  if (targets.dim() > 2 || targets.dim() < 1 || (rows && targets.size(0) != p.batch))
    throw_error(Error::Kind::shape, "targets " + targets.shape().str() + ", not [N, S] or [sum of lengths]");
  check_lengths(input_lengths, p.batch, p.steps, "input_lengths");
  check_lengths(target_lengths, p.batch, targets.size(-1), "target_lengths");
  int64_t total = 0;
  for (int64_t n : target_lengths) {
    p.longest = std::max(p.longest, n);
    total += n;
  }
  if (!rows && total != targets.numel())
    throw_error(Error::Kind::shape,
                std::to_string(targets.numel()) + " targets, target_lengths add up to " + std::to_string(total));

  const std::vector<int64_t> all = targets.to(i64).to("cpu").to_vector<int64_t>();
  const int64_t width = 2 * p.longest + 1;
  p.labels.assign(size_t(p.batch * width), blank);
  int64_t begin = 0;
  for (int64_t n = 0; n < p.batch; ++n) {
    if (rows) begin = n * targets.size(1);
    for (int64_t s = 0; s < target_lengths[size_t(n)]; ++s) {
      const int64_t label = all[size_t(begin + s)];
      if (label < 0 || label >= p.classes)
        throw_error(Error::Kind::index,
                    "label " + std::to_string(label) + " is not one of the " + std::to_string(p.classes) + " classes");
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

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CTCLossOptions& o) {
  loss::reduction(o.reduction, "ctc_loss");
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
