// The parts of data sets that need no types: checks of indices, splits, and rows of tensors.
#include <volta/data/dataset.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <volta/ops.h>

#include "backend/allocate.h"
#include "core/checked_arithmetic.h"
#include "data/host.h"

namespace volta::data::detail {

void throw_empty(const char* set) {
  throw_error(ErrorKind::argument, set, "the function is empty, or the set was moved from");
}

void check_item(int64_t i, int64_t size, const char* set) {
  require(i >= 0 && i < size, ErrorKind::index, set, "item ", i, " of a set of ", size);
}

int64_t end_of(int64_t begin, int64_t size) {
  require(size >= 0, ErrorKind::argument, "concat", "a set says that its size is ", size);
  return (Checked(begin) + size).value("concat");
}

void check_rows(std::span<const Tensor> tensors) {
  constexpr const char* op = "TensorDataset";
  for (const Tensor& x : tensors) {
    require(x.checked(op).dim() > 0, ErrorKind::shape, op, "needs tensors with an axis of items, got one of 0 axes");
    require(x.size(0) == tensors[0].size(0), ErrorKind::shape, op, "tensors of shapes ", tensors[0], " and ", x,
            " differ in the number of items");
  }
}

namespace {
// A share such as 0.29 of 100 items means 29, though the product is a little less.
double items_of_share(double share, int64_t size) {
  const double product = share * double(size), whole = std::round(product);
  const bool is_whole = std::abs(product - whole) <= 4 * std::numeric_limits<double>::epsilon() * product;
  return std::min(is_whole ? whole : std::floor(product), 0x1p62);
}
}  // namespace

int64_t first_size(int64_t size, double first) {
  if (first <= 1) return part_sizes(size, std::array{first, 1 - first})[0];
  require(first <= 0x1p53 && first == std::floor(first) && int64_t(first) <= size, ErrorKind::argument, "random_split",
          "a part of ", std::to_string(first), " items, of a set of ", size);
  return int64_t(first);
}

// As in PyTorch: parts that add up to 1 are shares, whose rounding goes to the first parts; others are sizes.
std::vector<int64_t> part_sizes(int64_t size, std::span<const double> parts) {
  constexpr const char* op = "random_split";
  for (const double part : parts)
    require(std::isfinite(part) && part >= 0 && part <= 0x1p53, ErrorKind::argument, op, "a part of ",
            std::to_string(part), " items or shares");
  const bool shares = std::abs(std::accumulate(parts.begin(), parts.end(), 0.0) - 1) < 1e-6;
  std::vector<int64_t> sizes;
  for (const double part : parts) {
    require(shares || part == std::floor(part), ErrorKind::argument, op,
            "parts are sizes, or shares that add up to 1; ", std::to_string(part), " is neither");
    sizes.push_back(int64_t(shares ? items_of_share(part, size) : part));
  }
  int64_t sum = 0;
  for (const int64_t s : sizes) sum += s;  // each is at most 2^53
  if (shares)
    for (size_t i = 0; sum < size; i = (i + 1) % sizes.size(), ++sum) ++sizes[i];
  require(sum == size, ErrorKind::argument, op, "parts of ", sum, " items in all, of a set of ", size);
  return sizes;
}

std::vector<int64_t> shuffled(int64_t size, std::optional<uint64_t> seed) {
  Generator own(seed.value_or(0));
  return randperm(size, {.device = Device(), .generator = seed ? &own : nullptr}).to_vector<int64_t>();
}

Tensor rows_of(const Tensor& x, std::span<const int64_t> rows) {
  constexpr const char* op = "TensorDataset";
  const int64_t size = x.size(0);
  for (const int64_t row : rows) check_item(row, size, op);
  if (!is_host_bytes(x.detach())) return x.detach().index_select(0, tensor(rows, {rows.size()}).to(x.device()));
  Shape shape = x.shape();
  shape[0] = int64_t(rows.size());
  const Tensor out = allocate_host(shape, x.dtype(), op);
  const size_t bytes = size == 0 ? 0 : size_t(x.nbytes() / size);
  if (bytes == 0) return out;
  const char* from = static_cast<const char*>(address(x));
  char* to = static_cast<char*>(address(out));
  for (const int64_t row : rows) {
    std::memcpy(to, from + size_t(row) * bytes, bytes);
    to += bytes;
  }
  return out;
}

}  // namespace volta::data::detail
