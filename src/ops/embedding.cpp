// Embeddings: rows of a table, one by one or reduced in bags.
#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/room.h"
#include "graph/record.h"
#include "ops/embedding.h"
#include "ops/gather_scatter.h"

namespace volta {

int64_t checked_padding(const Tensor& weight, int64_t row, const char* op) {
  const int64_t n = weight.checked(op).dim() == 2 ? weight.size(0) : 0;
  require(row >= -n && row < n, ErrorKind::index, op, "padding_idx ", row, " is not a row of a weight of shape ",
          weight);
  return row < 0 ? row + n : row;
}

void check_norm(const std::optional<double>& max_norm, double norm_type, const char* op) {
  if (!max_norm) return;
  require(*max_norm >= 0, ErrorKind::argument, op, "max_norm must be at least 0, not ", *max_norm);
  require(norm_type > 0, ErrorKind::argument, op, "norm_type must be above 0, not ", norm_type);
}

namespace {

// Shortens the rows that are looked up, in place: row *= max_norm / |row| where |row| is above max_norm.
void shorten(Tensor weight, const Tensor& indices, double max_norm, double norm_type) {
  const NoGrad off;
  const Tensor rows = unique(indices).values;
  const Tensor values = weight.detach().index_select(0, rows).to(traits(weight.dtype()).compute);
  const Tensor length = norm(values, norm_type, 1, true);
  const Tensor shortened = where(length > max_norm, values * (max_norm / (length + 1e-7)), values);
  weight.copy_(weight.detach().index_copy(0, rows, shortened.to(weight.dtype())));
}

// The value of y, with its gradient multiplied by s.
Tensor scale_gradient(const Tensor& y, const Tensor& s) {
  return record("embedding", y.detach().clone(), {y},
                [s = save(s)](const Tensor& g, Gradients& d) { d[0] = g * d.take(s); });
}

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingOptions& o) {
  weight.checked("embedding"), indices.checked("embedding");
  check_norm(o.max_norm, o.norm_type, "embedding");
  const int64_t padding = o.padding_idx ? checked_padding(weight, *o.padding_idx, "embedding") : -1;
  if (o.max_norm && !is_replaying()) {
    const Tensor valid = embedding(indices, weight.detach());  // throws before anything is changed
    if (valid.numel()) shorten(weight, indices, *o.max_norm, o.norm_type);
  }
  if (!weight.requires_grad()) return embedding(indices, weight);
  Tensor y;
  if (o.scale_grad_by_freq) {  // halves in f32, which holds the counts and the sums of what they divide
    const DType wide = traits(weight.dtype()).compute;
    const Tensor counts = bincount(indices.flatten(), {}, weight.size(0)).to(wide);
    y = scale_gradient(embedding(indices, weight.to(wide)), 1 / embedding(indices, counts.unsqueeze(1)));
    y = y.to(weight.dtype());
  } else {
    y = embedding(indices, weight);
  }
  return o.padding_idx ? where((indices.to(i64) == padding).unsqueeze(-1), y.detach(), y) : y;
}

namespace {

struct Bags {
  Tensor indices, owner;  // of each index in a bag: the row of the table, and its bag
  int64_t count;
};

Bags bags_of(const Tensor& indices, const Tensor& offsets, bool include_last) {
  const auto fail = [](const std::string& why) { throw Error(Error::Kind::shape, "embedding_bag", why); };
  const Options where{.dtype = i64, .device = indices.device()};
  if (indices.dim() == 2) {
    if (offsets.defined()) fail("offsets go with indices [n], not " + indices.shape().str());
    const Tensor rows = arange(0, indices.size(0), 1, where);
    return {indices.flatten(), repeat_interleave(rows, indices.size(1)), indices.size(0)};
  }
  if (indices.dim() != 1) fail("indices must be [n] or [bags, n], got " + indices.shape().str());
  if (!offsets.defined() || offsets.dim() != 1 || offsets.numel() == 0) fail("indices [n] need offsets [bags]");
  const Tensor given = as_index(offsets, "embedding_bag");
  const std::vector<int64_t> starts = within_memory("embedding_bag", [&] { return given.to_vector<int64_t>(); });
  for (size_t i = 0; i < starts.size(); ++i)
    if (starts[i] < (i ? starts[i - 1] : 0) || starts[i] > indices.numel() || (i == 0 && starts[i] != 0))
      fail("offsets must start at 0, not fall, and stay within the " + std::to_string(indices.numel()) + " indices");
  const int64_t count = int64_t(starts.size()) - include_last, used = include_last ? starts.back() : indices.numel();
  const Tensor firsts = given.narrow(0, 0, count);
  return {indices.narrow(0, 0, used), searchsorted(firsts, arange(0, used, 1, where), {.right = true}) - 1, count};
}

// The largest of each bag by column; of equal ones the first takes the gradient. `none` holds the values of empty bags.
Tensor largest_of_bags(const Tensor& rows, const Bags& bags, const Tensor& none) {
  const Tensor owner = bags.owner.unsqueeze(1).expand(rows.shape());
  const int64_t n = rows.size(0);
  if (n == 0) return scatter_reduce(none, 0, owner, rows, "amax", false);
  Tensor first;
  {
    const NoGrad off;
    const Tensor top = scatter_reduce(none, 0, owner, rows, "amax", false).gather(0, owner);
    const Tensor place = arange(0, n, 1, {.device = rows.device()}).unsqueeze(1).expand(rows.shape());
    const Tensor candidates = where(logical_or(rows == top, isnan(rows)), place, n);
    const Tensor start = full(none.shape(), n, {.dtype = i64, .device = rows.device()});
    first = scatter_reduce(start, 0, owner, candidates, "amin");
  }
  return where(first == n, none, rows.gather(0, clamp_max(first, n - 1)));
}

}  // namespace

Tensor Plain::embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets,
                            const EmbeddingBagOptions& o, const Tensor& sample_weights) {
  const char* op = "embedding_bag";
  const BagMode mode = o.mode.of(op, "mode");
  check_norm(o.max_norm, o.norm_type, op);
  require(weight.checked(op).dim() == 2, ErrorKind::shape, op, "weight must be [rows, dim], got shape ", weight);
  require(weight.dtype() != boolean && (!sample_weights.defined() || sample_weights.dtype() == weight.dtype()),
          ErrorKind::dtype, op, "needs a weight of numbers, and per_sample_weights of the same dtype");
  require(!sample_weights.defined() || (mode == BagMode::sum && sample_weights.shape() == indices.checked(op).shape()),
          ErrorKind::argument, op, "per_sample_weights need mode sum and the shape of the indices");
  common_device(indices, weight, op);
  if (sample_weights.defined()) common_device(weight, sample_weights, op);
  check_indices(as_index(indices, op), weight.size(0), 0, op);
  Bags bags = bags_of(indices.checked(op), offsets, o.include_last_offset);
  Tensor factors = sample_weights.defined() ? sample_weights.flatten().narrow(0, 0, bags.indices.numel()) : Tensor();
  if (o.padding_idx) {
    const Tensor real = (bags.indices.to(i64) != checked_padding(weight, *o.padding_idx, op)).nonzero().flatten();
    bags.indices = bags.indices.index_select(0, real), bags.owner = bags.owner.index_select(0, real);
    if (factors.defined()) factors = factors.index_select(0, real);
  }
  EmbeddingOptions look;
  look.max_norm = o.max_norm, look.norm_type = o.norm_type;
  Tensor rows = embedding(bags.indices, weight, look);
  const Tensor none = zeros({bags.count, weight.size(1)}, {.dtype = weight.dtype(), .device = weight.device()});
  if (mode == BagMode::max) return largest_of_bags(rows, bags, none);
  // Halves are multiplied, added and divided in f32.
  const DType wide = traits(weight.dtype()).compute;
  rows = rows.to(wide);
  if (factors.defined()) rows = rows * factors.to(wide).unsqueeze(1);
  const Tensor sums = index_add(none.to(wide), 0, bags.owner, rows);
  if (mode == BagMode::sum) return sums.to(weight.dtype());
  const Tensor counts = clamp_min(bincount(bags.owner, {}, bags.count), 1).to(wide).unsqueeze(1);
  const Tensor means = sums / counts;
  return is_half(weight.dtype()) ? means.to(weight.dtype()) : means;
}

}  // namespace volta
