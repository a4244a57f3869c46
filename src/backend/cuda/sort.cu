// Sorting on the GPU: every element becomes an unsigned key in the order wanted, keys are radix-sorted with their
// places (stable), and the elements follow. Many rows are sorted at once: first by key, then, stably, by row.
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

template <class T> using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, KeyOf<T>>>;

// An unsigned integer in the order of the elements, in the lowest bits. Of floats, the sign bit is flipped and negative
// values are complemented; both zeros share a key, and so do all NaN.
template <class T> __device__ BitsOf<T> ascending_key(Stored<T> x) {
  using Bits = BitsOf<T>;
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) return x != 0;
  else if constexpr (std::is_unsigned_v<T>) return x;
  else if constexpr (std::is_integral_v<T>) return Bits(Bits(x) ^ sign);
  else {
    constexpr int mantissa = std::is_same_v<T, float16>    ? 10
                             : std::is_same_v<T, bfloat16> ? 7
                             : sizeof(T) == 4              ? 23
                                                           : 52;
    constexpr Bits infinity = Bits(Bits(sign - 1) >> mantissa << mantissa);
    Bits bits;
    memcpy(&bits, &x, sizeof(T));
    const Bits magnitude = Bits(bits & ~sign);
    const Bits ordered = bits == magnitude || magnitude == 0 ? Bits(magnitude | sign) : Bits(~bits);
    return magnitude > infinity ? Bits(~Bits(0)) : ordered;
  }
}

struct SortArgs : Lines<3> {  // in, values, indices
  uint32_t length, begin, wanted;
  bool descending;
};

template <class T> __global__ void make_keys(const __grid_constant__ SortArgs a, KeyOf<T>* keys, uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / a.length;
  if (row >= a.lines.n) return;
  const char* in = place(a.lines, row).p[0][0] + int64_t(i - row * a.length) * a.step[0];
  const auto key = ascending_key<T>(*reinterpret_cast<const Stored<T>*>(in));
  keys[i] = BitsOf<T>(a.descending ? ~key : key);
  places[i] = i;
}

__global__ void make_row_keys(uint32_t total, uint32_t length, const uint32_t* places, uint32_t* keys) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i < total) keys[i] = places[i] / length;
}

template <class Word> __global__ void put_sorted(const __grid_constant__ SortArgs a, const uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / a.wanted;
  if (row >= a.lines.n) return;
  const uint32_t at = i - row * a.wanted, from = places[row * a.length + a.begin + at] - row * a.length;
  const auto [in, values, indices] = place(a.lines, row).p[0];
  if (values) *reinterpret_cast<Word*>(values + at * a.step[1]) = *reinterpret_cast<const Word*>(in + from * a.step[0]);
  if (indices) *reinterpret_cast<int64_t*>(indices + at * a.step[2]) = from;
}

// Sorts keys and places by the lowest `bits`, leaving the result in the current halves of the buffers.
template <class Key>
void radix_sort(Context& c, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& places, int64_t n, int bits) {
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, places, n, 0, bits, c.stream), "sort");
  const Room room = c.memory.take(int64_t(bytes), "sort");
  check(cub::DeviceRadixSort::SortPairs(room->data, bytes, keys, places, n, 0, bits, c.stream), "sort");
}

template <class T> void sort_rows(Context& c, const SortArgs& a) {
  const int64_t total = int64_t(a.lines.n) * a.length;
  const unsigned blocks = blocks_for(total, threads), wanted = blocks_for(int64_t(a.lines.n) * a.wanted, threads);
  const Room key_room = c.memory.take(2 * total * int64_t(sizeof(KeyOf<T>)), "sort");
  const Room place_room = c.memory.take(2 * total * 4, "sort");
  const auto halves = [&]<class X>(const Room& room, TypeTag<X>) {
    X* first = reinterpret_cast<X*>(room->data);
    return cub::DoubleBuffer<X>(first, first + total);
  };
  auto keys = halves(key_room, TypeTag<KeyOf<T>>{});
  auto places = halves(place_room, TypeTag<uint32_t>{});
  launch(c, "sort", &make_keys<T>, blocks, threads, a, keys.Current(), places.Current());
  radix_sort(c, keys, places, total, 8 * int(sizeof(T)));
  if (a.lines.n > 1) {
    auto rows = halves(key_room, TypeTag<uint32_t>{});
    launch(c, "sort", &make_row_keys, blocks, threads, uint32_t(total), a.length, places.Current(), rows.Current());
    radix_sort(c, rows, places, total, std::bit_width(a.lines.n - 1));
  }
  with_word(sizeof(T), [&]<class Word>(TypeTag<Word>) {
    launch(c, "sort", &put_sorted<Word>, wanted, threads, a, places.Current());
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
  const int64_t wanted = in.rank() > 0 ? result.shape[call.axis] : 1;
  if (in.numel() == 0 || wanted == 0) return;
  const Args<3> args{&call.in, &call.values, &call.indices};
  SortArgs a{{in.shape, args, call.axis}, 0, uint32_t(call.begin), uint32_t(wanted), call.descending};
  if (a.n > chunk_limit)
    throw Error(Error::Kind::argument, "sort", "rows of more than 2^30 elements are not sorted on a GPU");
  a.length = uint32_t(a.n);
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
