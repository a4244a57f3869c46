// Least-significant-digit radix sort and selection, on integer keys in the elements' order paired with their indices.
#include "backend/cpu/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/parallel.h"

namespace volta::cpu {
namespace {

template <class T> using KeyOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T> constexpr bool is_float = !std::is_integral_v<T>;

// A bool is read as a byte: any value but 0 is true.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T> constexpr int exponent_start = std::is_same_v<T, float16>    ? 10
                                                  : std::is_same_v<T, bfloat16> ? 7
                                                  : sizeof(T) == 4              ? 23
                                                                                : 52;

// An unsigned integer in the order of the elements. Of floats, the sign bit is flipped and negative values are
// complemented; both zeros share a key, and so do all NaN.
template <class T> KeyOf<T> ascending_key(Stored<T> x) {
  using Key = KeyOf<T>;
  constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else if constexpr (std::is_unsigned_v<T>) return x;
  else if constexpr (!is_float<T>) return Key(Key(x) ^ sign);
  else {
    const Key bits = std::bit_cast<Key>(x), magnitude = Key(bits & ~sign);
    const Key infinity = Key(Key(sign - 1) >> exponent_start<T> << exponent_start<T>);
    const Key ordered = bits == magnitude || magnitude == 0 ? Key(magnitude | sign) : Key(~bits);
    return magnitude > infinity ? Key(~Key(0)) : ordered;
  }
}

// A key with its index. Keys of up to 32 bits share one word with it, so records compare and move as integers.
struct Packed {
  using Key = uint32_t;
  uint64_t word;
  Packed() = default;
  Packed(Key key, uint64_t index) : word(uint64_t(key) << 32 | index) {}
  Key key() const { return Key(word >> 32); }
  int64_t index() const { return int64_t(uint32_t(word)); }
  friend bool operator<(Packed a, Packed b) { return a.word < b.word; }
};

struct Wide {
  using Key = uint64_t;
  uint64_t bits, position;
  Wide() = default;
  Wide(Key key, uint64_t index) : bits(key), position(index) {}
  Key key() const { return bits; }
  int64_t index() const { return int64_t(position); }
  friend bool operator<(Wide a, Wide b) { return a.bits != b.bits ? a.bits < b.bits : a.position < b.position; }
};

// The row as a sequence of records in ascending order of what is wanted first.
template <class T> struct Row {
  const Stored<T>* in;
  KeyOf<T> flip;  // all ones to sort descending
  KeyOf<T> key(int64_t i) const { return KeyOf<T>(ascending_key<T>(in[i]) ^ flip); }
  template <class Record> Record record(int64_t i) const { return Record(key(i), uint64_t(i)); }
};

template <class T> Row<T> row_of(const void* in, bool descending) {
  return {static_cast<const Stored<T>*>(in), descending ? KeyOf<T>(~KeyOf<T>(0)) : KeyOf<T>(0)};
}

// Calls f(row, TypeTag<Record>) for the dtype; indices of rows beyond 2^32 need the wide record.
template <class F> void with_row(DType dtype, int64_t n, const void* in, bool descending, F&& f) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Row<T> row = row_of<T>(in, descending);
    if (sizeof(T) == 8 || n > int64_t(1) << 32) f(row, TypeTag<Wide>{});
    else f(row, TypeTag<Packed>{});
  });
}

template <class Record> struct Records {
  explicit Records(int64_t n) : data(std::make_unique_for_overwrite<Record[]>(size_t(n))) {}
  std::unique_ptr<Record[]> data;
  Record* get() const { return data.get(); }
};

template <class T, class Record> void write(const Row<T>& row, const Record& r, Stored<T>* value, int64_t* index) {
  *value = row.in[r.index()];
  *index = r.index();
}

template <class Record> void insertion_sort(Record* a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const Record x = a[i];
    int64_t j = i;
    for (; j > 0 && x < a[j - 1]; j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

constexpr int digit_bits = 8;
constexpr int digit_values = 1 << digit_bits;
using Counts = std::array<uint64_t, digit_values>;

template <class Key> size_t digit(Key key, int pass) { return size_t(key >> (pass * digit_bits)) & (digit_values - 1); }

// Rows are cut into blocks of a fixed number of elements. In each pass a block counts its digits, the counts of all
// blocks become the places where each block's runs begin, and every block moves its own records there, in order.
struct Blocks {
  explicit Blocks(int64_t length) : n(length), count(std::clamp<int64_t>(length / 65536, 1, 32)) {}
  int64_t n, count;
  int64_t begin(int64_t block) const { return n * block / count; }
};

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

template <class T, class Record> class RadixSort {
 public:
  RadixSort(const Row<T>& row, int64_t n)
      : row_(row), blocks_(n), counts_(size_t(blocks_.count)), from_(n), to_(n), n_(n) {}

  void run(Stored<T>* values, int64_t* indices) {
    make_records();
    for (int pass = 0; pass < int(sizeof(T)); pass++) move(pass);
    const Record* sorted = from_.get();
    each_block([&](int64_t, int64_t i, int64_t end) {
      for (; i < end; i++) write(row_, sorted[i], values + i, indices + i);
    });
  }

 private:
  template <class F> void each_block(F&& f) {
    parallel(blocks_.count, [&](int64_t b) { f(b, blocks_.begin(b), blocks_.begin(b + 1)); });
  }

  void make_records() {
    Record* out = from_.get();
    each_block([&](int64_t, int64_t i, int64_t end) {
      for (; i < end; i++) out[i] = row_.template record<Record>(i);
    });
  }

  void move(int pass) {
    const Record* in = from_.get();
    each_block([&](int64_t b, int64_t i, int64_t end) {
      Counts c{};
      for (; i < end; i++) c[digit(in[i].key(), pass)]++;
      counts_[size_t(b)] = c;
    });
    if (!place(counts_, n_)) return;
    Record* out = to_.get();
    each_block([&](int64_t b, int64_t i, int64_t end) {
      Counts next = counts_[size_t(b)];
      for (; i < end; i++) out[next[digit(in[i].key(), pass)]++] = in[i];
    });
    std::swap(from_.data, to_.data);
  }

  Row<T> row_;
  Blocks blocks_;
  std::vector<Counts> counts_;
  Records<Record> from_, to_;
  int64_t n_;
};

template <class T, class Record> void sort_short(const Row<T>& row, int64_t n, Stored<T>* values, int64_t* indices) {
  constexpr int64_t most = 256, few = 24;
  Record records[most];
  for (int64_t i = 0; i < n; i++) records[i] = row.template record<Record>(i);
  if (n <= few) insertion_sort(records, n);
  else std::sort(records, records + n);
  for (int64_t i = 0; i < n; i++) write(row, records[i], values + i, indices + i);
}

// Keeps the k first records seen so far among at most 2k + 1000; what does not beat the k-th is not even stored. Every
// clearing costs as much as the elements that caused it, so the whole is linear.
template <class T, class Record> std::vector<Record> first_k(const Row<T>& row, int64_t n, int64_t k) {
  const size_t room = size_t(std::min(n, 2 * k + 1000));
  std::vector<Record> kept;
  kept.reserve(room);
  Record limit{};
  bool limited = false;
  for (int64_t i = 0; i < n; i++) {
    const Record r = row.template record<Record>(i);
    if (limited && limit < r) continue;
    kept.push_back(r);
    if (kept.size() < room || i + 1 == n) continue;
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
    kept.resize(size_t(k));
    limit = kept.back();
    limited = true;
  }
  if (int64_t(kept.size()) > k) {
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
    kept.resize(size_t(k));
  }
  return kept;
}

// The record at position k: leading digits are counted to find the one it has, then only records with that digit are
// looked at.
template <class T, class Record> Record nth(const Row<T>& row, int64_t n, int64_t k) {
  using Key = KeyOf<T>;
  constexpr int bits = sizeof(Key) == 1 ? 8 : 11, shift = 8 * sizeof(Key) - bits;
  std::vector<int64_t> counts(size_t(1) << bits);
  for (int64_t i = 0; i < n; i++) counts[size_t(row.key(i) >> shift)]++;
  size_t value = 0;
  for (; k >= counts[value]; value++) k -= counts[value];
  std::vector<Record> same;
  same.reserve(size_t(counts[value]));
  for (int64_t i = 0; i < n; i++)
    if (size_t(row.key(i) >> shift) == value) same.push_back(row.template record<Record>(i));
  std::nth_element(same.begin(), same.begin() + k, same.end());
  return same[size_t(k)];
}

}  // namespace

void sort_row(DType dtype, int64_t n, const void* in, void* values_out, int64_t* indices_out, bool descending) {
  with_row(dtype, n, in, descending, [&]<class T, class Record>(const Row<T>& row, TypeTag<Record>) {
    auto* values = static_cast<Stored<T>*>(values_out);
    if (n <= 256) sort_short<T, Record>(row, n, values, indices_out);
    else RadixSort<T, Record>(row, n).run(values, indices_out);
  });
}

void topk_row(DType dtype, int64_t n, int64_t k, const void* in, void* values_out, int64_t* indices_out, bool largest,
              bool sorted) {
  if (k <= 0) return;
  with_row(dtype, n, in, largest, [&]<class T, class Record>(const Row<T>& row, TypeTag<Record>) {
    std::vector<Record> first = first_k<T, Record>(row, n, k);
    if (sorted) std::sort(first.begin(), first.end());
    auto* values = static_cast<Stored<T>*>(values_out);
    for (int64_t i = 0; i < k; i++) write(row, first[size_t(i)], values + i, indices_out + i);
  });
}

void nth_row(DType dtype, int64_t n, int64_t k, const void* in, void* value_out, int64_t* index_out) {
  with_row(dtype, n, in, false, [&]<class T, class Record>(const Row<T>& row, TypeTag<Record>) {
    write(row, nth<T, Record>(row, n, k), static_cast<Stored<T>*>(value_out), index_out);
  });
}

}  // namespace volta::cpu
