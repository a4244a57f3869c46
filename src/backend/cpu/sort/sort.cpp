// Sorting, selection and searching along an axis of any layout: least-significant-digit radix sort and selection on
// integer keys in the elements' order, paired with their indices.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "core/checked_arithmetic.h"
#include "core/room.h"

namespace volta::cpu {
namespace {

// Throws unless there is memory for so many elements: an expanded axis has more than any memory holds.
void require_room(int64_t n, size_t bytes_each) {
  const char* op = "sort";
  require_memory((Checked(n) * bytes_each).value(op, "no memory holds what is to be ordered", ErrorKind::memory), op);
}

template <class T> using KeyOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// A bool is read as a byte: any value but 0 is true.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// An unsigned integer in the order of the elements. Of floats, the sign bit is flipped and negative values are
// complemented; both zeros share a key, and so do all NaN.
template <class T> KeyOf<T> ascending_key(Stored<T> x) {
  using Key = KeyOf<T>;
  constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else if constexpr (std::is_unsigned_v<T>) return x;
  else if constexpr (std::is_integral_v<T>) return Key(Key(x) ^ sign);
  else {
    constexpr Key infinity = std::bit_cast<Key>(T(std::numeric_limits<float>::infinity()));
    const Key bits = std::bit_cast<Key>(x), magnitude = Key(bits & ~sign);
    const Key ordered = bits == magnitude || magnitude == 0 ? Key(magnitude | sign) : Key(~bits);
    return magnitude > infinity ? Key(~Key(0)) : ordered;
  }
}

// A key with its index, each in one half of a word, so records compare and move as integers.
using Narrow = uint64_t;
__extension__ using Wide = unsigned __int128;
template <class Record> using Half = std::conditional_t<sizeof(Record) == 8, uint32_t, uint64_t>;
template <class Record> constexpr int half_bits = 4 * sizeof(Record);

// The row as a sequence of records in ascending order of what is wanted first.
template <class T, class Record> struct Row {
  const Stored<T>* in;
  KeyOf<T> flip;  // all ones to sort descending
  KeyOf<T> key(int64_t i) const { return KeyOf<T>(ascending_key<T>(in[i]) ^ flip); }
  Record operator[](int64_t i) const { return Record(key(i)) << half_bits<Record> | Record(i); }
  void write(int64_t n, const Record* records, void* values, int64_t* indices) const {
    for (int64_t i = 0; i < n; i++) {
      indices[i] = int64_t(Half<Record>(records[i]));
      static_cast<Stored<T>*>(values)[i] = in[indices[i]];
    }
  }
};

// Calls f(row) for the dtype; indices of rows beyond 2^32 need the wide record.
template <class F> void with_row(DType dtype, int64_t n, const void* in, bool descending, F&& f) {
  visit(dtype, [&]<class T>(TypeTag<T>) {
    const auto* elements = static_cast<const Stored<T>*>(in);
    const auto flip = KeyOf<T>(descending ? -1 : 0);
    if (sizeof(T) == 8 || n > int64_t(1) << 32) f(Row<T, Wide>{elements, flip});
    else f(Row<T, Narrow>{elements, flip});
  });
}

constexpr int digit_bits = 8;
constexpr int digit_values = 1 << digit_bits;
using Counts = std::array<uint64_t, digit_values>;

template <class Record> size_t digit(Record record, int pass) {
  return size_t(Half<Record>(record >> half_bits<Record>) >> (pass * digit_bits)) & (digit_values - 1);
}

// Turns counts into starting places; false if one digit value has all, when the pass would move nothing.
bool place(std::vector<Counts>& counts, int64_t n) {
  uint64_t next = 0;
  for (size_t value = 0; value < digit_values; value++) {
    const uint64_t before = next;
    for (Counts& c : counts) next += std::exchange(c[value], next);
    if (next - before == uint64_t(n)) return false;
  }
  return true;
}

// Rows are cut into blocks of a fixed number of elements. In each pass a block counts its digits, the counts of all
// blocks become the places where each block's runs begin, and every block moves its own records there, in order.
template <class T, class Record> void radix_sort(const Row<T, Record>& row, int64_t n, void* values, int64_t* indices) {
  const int64_t blocks = std::clamp<int64_t>(n / 65536, 1, 32);
  const auto each_block = [=](auto&& f) {
    parallel(blocks, [&](int64_t b) { f(size_t(b), n * b / blocks, n * (b + 1) / blocks); });
  };
  require_room(n, 2 * sizeof(Record));
  auto from = std::make_unique_for_overwrite<Record[]>(size_t(n));
  auto to = std::make_unique_for_overwrite<Record[]>(size_t(n));
  std::vector<Counts> counts(static_cast<size_t>(blocks));
  each_block([&, out = from.get()](size_t, int64_t i, int64_t end) {
    for (; i < end; i++) out[i] = row[i];
  });
  for (int pass = 0; pass < int(sizeof(T)); pass++) {
    const Record* in = from.get();
    Record* out = to.get();
    each_block([&, in](size_t b, int64_t i, int64_t end) {
      Counts c{};
      for (; i < end; i++) c[digit(in[i], pass)]++;
      counts[b] = c;
    });
    if (!place(counts, n)) continue;
    each_block([&, in, out](size_t b, int64_t i, int64_t end) {
      Counts next = counts[b];
      for (; i < end; i++) out[next[digit(in[i], pass)]++] = in[i];
    });
    std::swap(from, to);
  }
  each_block([&](size_t, int64_t i, int64_t end) {
    row.write(end - i, from.get() + i, static_cast<Stored<T>*>(values) + i, indices + i);
  });
}

constexpr int64_t short_row = 256;

template <class T, class Record> void sort_short(const Row<T, Record>& row, int64_t n, void* values, int64_t* indices) {
  Record records[short_row];
  for (int64_t i = 0; i < n; i++) records[i] = row[i];
  std::sort(records, records + n);
  row.write(n, records, values, indices);
}

template <class Record> void keep_first(std::vector<Record>& records, int64_t k) {
  if (int64_t(records.size()) <= k) return;
  std::nth_element(records.begin(), records.begin() + (k - 1), records.end());
  records.resize(size_t(k));
}

// Keeps the k first records seen so far among at most 2k + 1000; what does not beat the k-th is not even stored. Every
// clearing costs as much as the elements that caused it, so the whole is linear.
template <class T, class Record> std::vector<Record> first_k(const Row<T, Record>& row, int64_t n, int64_t k) {
  const size_t room = size_t(n / 2 < k ? n : std::min(n, 2 * k + 1000));
  require_room(int64_t(room), sizeof(Record));
  std::vector<Record> kept;
  kept.reserve(room);
  Record limit = ~Record(0);
  for (int64_t i = 0; i < n; i++) {
    const Record r = row[i];
    if (limit < r) continue;
    kept.push_back(r);
    if (kept.size() < room) continue;
    keep_first(kept, k);
    limit = kept.back();
  }
  keep_first(kept, k);
  return kept;
}

// The record at position k: leading digits are counted to find the one it has, then only records with that digit are
// looked at.
template <class T, class Record> Record nth(const Row<T, Record>& row, int64_t n, int64_t k) {
  constexpr int bits = sizeof(T) == 1 ? 8 : 11, shift = 8 * sizeof(T) - bits;
  std::vector<int64_t> counts(size_t(1) << bits);
  for (int64_t i = 0; i < n; i++) counts[size_t(row.key(i) >> shift)]++;
  size_t value = 0;
  for (; k >= counts[value]; value++) k -= counts[value];
  require_room(counts[value], sizeof(Record));
  std::vector<Record> same;
  same.reserve(size_t(counts[value]));
  for (int64_t i = 0; i < n; i++)
    if (size_t(row.key(i) >> shift) == value) same.push_back(row[i]);
  std::nth_element(same.begin(), same.begin() + k, same.end());
  return same[size_t(k)];
}

// Positions [begin, begin + wanted) of the sorted row at these addresses of in, values and indices; the last two may be
// missing. What is wanted whole and contiguous is sorted into its place, else in `space`, which has 24 bytes for every
// element.
void sort_window(const SortCall& call, int64_t wanted, const AxisLoop<3>& lanes, const int64_t* offset, char* space) {
  const DType dtype = call.in.dtype;
  const int64_t size = size_of(dtype), n = call.in.layout->shape[call.axis], begin = call.begin;
  const auto at = [&](const Arg& a, int k) { return a.data ? static_cast<char*>(a.data) + offset[k] : nullptr; };
  char *row = at(call.in, 0), *values_out = at(call.values, 1), *indices_out = at(call.indices, 2);
  char *values = space + 8 * n, *indices = space + 16 * n;
  if (lanes.step[0] != size && n > 1) {
    gather_row(size, n, space, row, lanes.step[0]);
    row = space;
  }
  if (wanted == n && values_out && lanes.step[1] == size) values = values_out;
  if (wanted == n && indices_out && lanes.step[2] == 8) indices = indices_out;
  auto* positions = reinterpret_cast<int64_t*>(indices);
  const bool one = wanted == 1 && !call.descending;
  if (one) nth_row(dtype, n, begin, row, values, positions);
  else if (begin + wanted <= n / 8) topk_row(dtype, n, begin + wanted, row, values, positions, call.descending, true);
  else sort_row(dtype, n, row, values, positions, call.descending);
  const int64_t skipped = one ? 0 : begin;
  if (values_out && values != values_out) scatter_row(size, wanted, values_out, lanes.step[1], values + skipped * size);
  if (indices_out && indices != indices_out) scatter_row(8, wanted, indices_out, lanes.step[2], indices + skipped * 8);
}

// How many elements of a sorted row are before the value. Arithmetic instead of branches: which way to go is a coin toss.
template <class T> int64_t position(const char* sorted, int64_t step, int64_t n, KeyOf<T> value, bool right) {
  if (n == 0) return 0;
  const auto before = [&](int64_t i) {
    const KeyOf<T> x = ascending_key<T>(*reinterpret_cast<const Stored<T>*>(sorted + i * step));
    return int64_t((x < value) | ((x == value) & right));
  };
  int64_t begin = 0;
  for (; n > 1; n -= n / 2) begin += before(begin + n / 2 - 1) * (n / 2);
  return begin + before(begin);
}

}  // namespace

void search(const SearchCall& call) {
  if (call.out.layout->numel() == 0) return;
  const Layout& sorted = *call.sorted.layout;
  const int last = sorted.rank() - 1;
  Layout starts = sorted;  // of the rows, one for all that is looked for in it
  starts.shape[last] = 1;
  Arg rows = call.sorted;
  rows.layout = &starts;
  const StridedLoop<3> loop = axis_loop<3>(call.out.layout->shape, {&call.out, &call.values, &rows}).loop;
  visit(call.values.dtype, [&]<class T>(TypeTag<T>) {
    const int64_t along = sorted.strides[last] * int64_t(sizeof(T)), n = sorted.shape[last];
    parallel_rows(loop, 1 << 13, [&](const int64_t* offset, int64_t begin, int64_t count) {
      const auto at = [&](const Arg& a, int k, int64_t i) {
        return static_cast<char*>(a.data) + offset[k] + i * loop.stride[0][k];
      };
      for (int64_t i = begin; i < begin + count; ++i) {
        const KeyOf<T> value = ascending_key<T>(*reinterpret_cast<const Stored<T>*>(at(call.values, 1, i)));
        *reinterpret_cast<int64_t*>(at(call.out, 0, i)) =
            position<T>(at(call.sorted, 2, i), along, n, value, call.right);
      }
    });
  });
}

void sort_row(DType dtype, int64_t n, const void* in, void* values_out, int64_t* indices_out, bool descending) {
  with_row(dtype, n, in, descending, [&](const auto& row) {
    if (n <= short_row) sort_short(row, n, values_out, indices_out);
    else radix_sort(row, n, values_out, indices_out);
  });
}

void topk_row(DType dtype, int64_t n, int64_t k, const void* in, void* values_out, int64_t* indices_out, bool largest,
              bool sorted) {
  if (k <= 0) return;
  with_row(dtype, n, in, largest, [&](const auto& row) {
    auto first = first_k(row, n, k);
    if (sorted) std::sort(first.begin(), first.end());
    row.write(k, first.data(), values_out, indices_out);
  });
}

void nth_row(DType dtype, int64_t n, int64_t k, const void* in, void* value_out, int64_t* index_out) {
  with_row(dtype, n, in, false, [&](const auto& row) {
    const auto found = nth(row, n, k);
    row.write(1, &found, value_out, index_out);
  });
}

void sort(const SortCall& call) {
  const int64_t n = call.in.layout->shape[call.axis];
  const int64_t wanted = (call.values.data ? call.values : call.indices).layout->shape[call.axis];
  if (call.in.layout->numel() == 0 || wanted == 0) return;
  const auto lanes = axis_loop<3>(call.in.layout->shape, {&call.in, &call.values, &call.indices}, call.axis);
  const int64_t rows = lanes.loop.rows() * lanes.loop.size[0];
  const auto run = [&](int64_t begin, int64_t end) {
    require_room(n, 24);
    const auto space = std::make_unique_for_overwrite<char[]>(size_t(24 * n));
    const auto one = [&](const int64_t* offset) { sort_window(call, wanted, lanes, offset, space.get()); };
    lanes.loop.for_rows(begin, end, one, 0);
  };
  if (n >= int64_t(1) << 17 && rows < 16) run(0, rows);  // long rows are sorted by several threads each
  else parallel_ranges(rows, std::max<int64_t>(1, 4096 / n), run);
}

}  // namespace volta::cpu
