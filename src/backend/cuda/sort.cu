// Sorting on the GPU: every element becomes an unsigned key in the order wanted, keys are radix-sorted with their
// places (stable), and the elements follow. Many rows are sorted at once: places first by key, then, stably, by row.
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

template <class T> using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// An unsigned integer in the order of the elements, in the lowest bits. Of floats, the sign bit is flipped and negative
// values are complemented; both zeros share a key, and so do all NaN.
template <class T> __device__ BitsOf<T> ascending_key(Stored<T> x) {
  using Bits = BitsOf<T>;
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else if constexpr (std::is_unsigned_v<T>) return x;
  else if constexpr (std::is_integral_v<T>) return Bits(Bits(x) ^ sign);
  else {
    constexpr int digits = std::numeric_limits<T>::digits;  // 0 of a half
    constexpr int mantissa = digits > 0 ? digits - 1 : std::is_same_v<T, float16> ? 10 : 7;
    constexpr Bits infinity = Bits(Bits(sign - 1) >> mantissa << mantissa);
    Bits bits;
    memcpy(&bits, &x, sizeof(T));
    const Bits magnitude = Bits(bits & ~sign);
    const Bits ordered = bits == magnitude || magnitude == 0 ? Bits(magnitude | sign) : Bits(~bits);
    return magnitude > infinity ? Bits(~Bits(0)) : ordered;
  }
}

struct SortArgs : AxisRows<3> {  // in, values, indices
  int shift;                     // a place is the number of the row above this bit, the position in it below
  uint32_t begin, wanted;
  bool descending;
};

template <class T> __global__ void make_keys(const __grid_constant__ SortArgs a, KeyOf<T>* keys, uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, n = uint32_t(a.n), row = i / n, at = i - row * n;
  if (row >= a.lines.n) return;
  const char* in = place(a.lines, row).p[0][0] + at * a.step[0];
  const auto key = ascending_key<T>(*reinterpret_cast<const Stored<T>*>(in));
  keys[i] = BitsOf<T>(a.descending ? ~key : key);
  places[i] = row << a.shift | at;
}

template <class Word> __global__ void put_sorted(const __grid_constant__ SortArgs a, const uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / a.wanted, at = i - row * a.wanted;
  if (row >= a.lines.n) return;
  const uint32_t from = places[row * uint32_t(a.n) + a.begin + at] - (row << a.shift);
  const auto [in, values, indices] = place(a.lines, row).p[0];
  if (values) *reinterpret_cast<Word*>(values + at * a.step[1]) = *reinterpret_cast<const Word*>(in + from * a.step[0]);
  if (indices) *reinterpret_cast<int64_t*>(indices + at * a.step[2]) = from;
}

template <class T> void sort_rows(Context& c, const SortArgs& a) {
  const uint32_t rows = a.lines.n;
  const int64_t total = rows * a.n;
  const Room key_room = c.memory().take(2 * total * int64_t(sizeof(KeyOf<T>)), "sort");
  const Room place_room = c.memory().take(2 * total * 4, "sort");
  auto* first_key = reinterpret_cast<KeyOf<T>*>(key_room->data);
  auto* first_place = reinterpret_cast<uint32_t*>(place_room->data);
  cub::DoubleBuffer<KeyOf<T>> keys(first_key, first_key + total);
  cub::DoubleBuffer<uint32_t> places(first_place, first_place + total);
  launch(c, "sort", &make_keys<T>, blocks_for(total, threads), threads, a, first_key, first_place);
  const auto run = [&](auto radix_sort) {
    size_t bytes = 0;
    check(radix_sort(nullptr, bytes), "sort");
    const Room room = c.memory().take(int64_t(bytes), "sort");
    check(radix_sort(room->data, bytes), "sort");
    after_launch(c, "sort");
  };
  run([&](void* room, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(room, bytes, keys, places, total, 0, 8 * int(sizeof(T)), c.stream());
  });
  if (rows > 1)
    run([&](void* room, size_t& bytes) {
      const int bits = std::bit_width(rows - 1);
      return cub::DeviceRadixSort::SortKeys(room, bytes, places, total, a.shift, a.shift + bits, c.stream());
    });
  with_word(sizeof(T), [&]<class Word>(TypeTag<Word>) {
    launch(c, "sort", &put_sorted<Word>, blocks_for(int64_t(rows) * a.wanted, threads), threads, a, places.Current());
  });
}

template <class T> struct Search {  // out, values, sorted
  int64_t n, step;
  bool right;
  __device__ static BitsOf<T> key(const char* p) { return ascending_key<T>(*reinterpret_cast<const Stored<T>*>(p)); }
  __device__ BitsOf<T> load(char* const* p) const { return key(p[1]); }
  __device__ void store(char* const* p, BitsOf<T> value) const {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const auto x = key(p[2] + middle * step);
      if (right ? x <= value : x < value) low = middle + 1;
      else high = middle;
    }
    *reinterpret_cast<int64_t*>(p[0]) = low;
  }
};

}  // namespace

void Context::sort(const SortCall& call) {
  const OnDevice current(device);
  const Layout &in = *call.in.layout, &result = *(call.values.data ? call.values : call.indices).layout;
  const int64_t wanted = result.shape[call.axis];
  if (in.numel() == 0 || wanted == 0) return;
  const Args<3> args{&call.in, &call.values, &call.indices};
  SortArgs a{{in.shape, args, call.axis}, 0, uint32_t(call.begin), uint32_t(wanted), call.descending};
  require(a.n <= chunk_limit, ErrorKind::argument, "sort", "rows of more than 2^30 elements are not sorted on a GPU");
  a.shift = std::bit_width(uint64_t(a.n - 1));
  const auto sort_chunk = [&](const Strided<3>& lines) {
    a.lines = lines;
    visit(call.in.dtype, [&]<class T>(TypeTag<T>) { sort_rows<T>(*this, a); });
  };
  in_chunks(Operands<3>(in.shape, args, 1u << call.axis), sort_chunk, chunk_limit / a.n);
}

void Context::search(const SearchCall& call) {
  const OnDevice current(device);
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const Held sorted(call.sorted, shape.size() - 1);
  const Operands<3> x(shape, {&call.out, &call.values, &sorted});
  visit(call.values.dtype, [&]<class T>(TypeTag<T>) {
    each(*this, "searchsorted", x, Search<T>{sorted.size, sorted.step, call.right});
  });
}

}  // namespace volta::cuda
