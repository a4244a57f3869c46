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

struct SortArgs {
  Strided<3> rows;  // in, values, indices
  int64_t step[3];  // along the axis, in bytes
  uint32_t n, begin, wanted;
  bool descending;
};

template <class T> __global__ void make_keys(const __grid_constant__ SortArgs a, KeyOf<T>* keys, uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / a.n;
  if (row >= a.rows.n) return;
  const char* in = place(a.rows, row).p[0][0] + int64_t(i - row * a.n) * a.step[0];
  const auto key = ascending_key<T>(*reinterpret_cast<const Stored<T>*>(in));
  keys[i] = BitsOf<T>(a.descending ? ~key : key);
  places[i] = i;
}

__global__ void make_row_keys(uint32_t total, uint32_t n, const uint32_t* places, uint32_t* keys) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i < total) keys[i] = places[i] / n;
}

template <class Word> __global__ void put_sorted(const __grid_constant__ SortArgs a, const uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / a.wanted;
  if (row >= a.rows.n) return;
  const uint32_t at = i - row * a.wanted, from = places[row * a.n + a.begin + at] - row * a.n;
  const auto [in, values, indices] = place(a.rows, row).p[0];
  if (values) *reinterpret_cast<Word*>(values + at * a.step[1]) = *reinterpret_cast<const Word*>(in + from * a.step[0]);
  if (indices) *reinterpret_cast<int64_t*>(indices + at * a.step[2]) = from;
}

// Sorts keys and places by the lowest `bits`, leaving the result in the current halves of the buffers.
template <class Key>
void radix_sort(Context& c, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& places, int64_t n, int bits) {
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, places, n, 0, bits, c.stream), "sort");
  const Scratch scratch(c, int64_t(bytes), "sort");
  check(cub::DeviceRadixSort::SortPairs(scratch.as(), bytes, keys, places, n, 0, bits, c.stream), "sort");
}

template <class T> void sort_rows(Context& c, const SortArgs& a) {
  const int64_t total = int64_t(a.rows.n) * a.n;
  const unsigned blocks = blocks_for(total, threads);
  const Scratch key_room(c, 2 * total * int64_t(sizeof(KeyOf<T>)), "sort"), place_room(c, 2 * total * 4, "sort");
  cub::DoubleBuffer<KeyOf<T>> keys(key_room.as<KeyOf<T>>(), key_room.as<KeyOf<T>>() + total);
  cub::DoubleBuffer<uint32_t> places(place_room.as<uint32_t>(), place_room.as<uint32_t>() + total);
  launch(c, "sort", &make_keys<T>, blocks, threads, a, keys.Current(), places.Current());
  radix_sort(c, keys, places, total, 8 * int(sizeof(T)));
  if (a.rows.n > 1) {
    cub::DoubleBuffer<uint32_t> rows(key_room.as<uint32_t>(), key_room.as<uint32_t>() + total);
    launch(c, "sort", &make_row_keys, blocks, threads, uint32_t(total), a.n, places.Current(), rows.Current());
    radix_sort(c, rows, places, total, std::bit_width(a.rows.n - 1));
  }
  with_word(sizeof(T), [&]<class Word>(TypeTag<Word>) {
    launch(c, "sort", &put_sorted<Word>, blocks_for(int64_t(a.rows.n) * a.wanted, threads), threads, a,
           places.Current());
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
  const int64_t n = in.rank() > 0 ? in.shape[call.axis] : 1, wanted = in.rank() > 0 ? result.shape[call.axis] : 1;
  if (in.numel() == 0 || wanted == 0) return;
  if (n > chunk_limit)
    throw Error(Error::Kind::argument, "sort", "rows of more than 2^30 elements are not sorted on a GPU");
  const Arg* args[] = {&call.in, &call.values, &call.indices};
  SortArgs a{{}, {}, uint32_t(n), uint32_t(call.begin), uint32_t(wanted), call.descending};
  for (int k = 0; k < 3; ++k) a.step[k] = step_of(*args[k], call.axis, in.rank());
  const Walk<3> walk = walk_of<3>(in.shape, {args[0], args[1], args[2]}, 1u << call.axis);
  const auto sort_chunk = [&](const Strided<3>& rows) {
    a.rows = rows;
    visit(call.in.dtype, [&]<class T>(TypeTag<T>) { sort_rows<T>(*this, a); });
  };
  in_chunks<3>(walk, {call.in.data, call.values.data, call.indices.data}, sort_chunk, chunk_limit / n);
}

void Context::search(const SearchCall& call) {
  const OnDevice current(device);
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const int last = shape.size() - 1;
  Layout rows = *call.sorted.layout;  // of the sorted values, which stand still along the last axis
  const int64_t n = rows.shape[last], step = rows.strides[last] * size_of(call.sorted.dtype);
  rows.strides[last] = 0;
  Arg sorted = call.sorted;
  sorted.layout = &rows;
  const Walk<3> walk = walk_of<3>(shape, {&call.out, &call.values, &sorted});
  visit(call.values.dtype, [&]<class T>(TypeTag<T>) {
    each<3>(*this, "searchsorted", walk, {call.out.data, call.values.data, sorted.data},
            Search<T>{n, step, call.right});
  });
}

}  // namespace volta::cuda
