// Sorting on the GPU: every element becomes an unsigned key in the order wanted, keys are radix-sorted with their
// places (stable), and the elements follow. Many rows are sorted at once: first by key, then, stably, by row.
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/element.h"
#include "backend/cuda/loops.h"

namespace volta::cuda {
namespace {

constexpr int threads = 256;

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
  char* data[3];
  int64_t step[3];  // along the axis, in bytes
  uint32_t n, begin, wanted;
  bool descending;
};

template <class T> __global__ void make_keys(const __grid_constant__ SortArgs a, KeyOf<T>* keys, uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.rows.n * a.n) return;
  int64_t offset[3];
  const uint32_t row = i / a.n;
  offsets(a.rows, row, offset);
  const auto key =
      ascending_key<T>(*reinterpret_cast<const Stored<T>*>(a.data[0] + offset[0] + int64_t(i - row * a.n) * a.step[0]));
  keys[i] = BitsOf<T>(a.descending ? ~key : key);
  places[i] = i;
}

__global__ void make_row_keys(uint32_t total, uint32_t n, const uint32_t* places, uint32_t* keys) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i < total) keys[i] = places[i] / n;
}

template <class Word> __global__ void put_sorted(const __grid_constant__ SortArgs a, const uint32_t* places) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.rows.n * a.wanted) return;
  int64_t offset[3];
  const uint32_t row = i / a.wanted, at = i - row * a.wanted, from = places[row * a.n + a.begin + at] - row * a.n;
  offsets(a.rows, row, offset);
  if (a.data[1])
    *reinterpret_cast<Word*>(a.data[1] + offset[1] + at * a.step[1]) =
        *reinterpret_cast<const Word*>(a.data[0] + offset[0] + from * a.step[0]);
  if (a.data[2]) *reinterpret_cast<int64_t*>(a.data[2] + offset[2] + at * a.step[2]) = from;
}

// Sorts keys and places by the lowest `bits`, leaving the result in the current halves of the buffers.
template <class Key>
void radix_sort(Context& c, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& places, int64_t n, int bits) {
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, places, n, 0, bits, c.stream), "sort");
  const Scratch scratch(c, int64_t(bytes), "sort");
  check(cub::DeviceRadixSort::SortPairs(scratch.data(), bytes, keys, places, n, 0, bits, c.stream), "sort");
}

template <class T> void sort_rows(Context& c, const SortArgs& a) {
  const int64_t total = int64_t(a.rows.n) * a.n;
  const Scratch key_room(c, 2 * total * int64_t(sizeof(KeyOf<T>)), "sort"), place_room(c, 2 * total * 4, "sort");
  cub::DoubleBuffer<KeyOf<T>> keys(key_room.as<KeyOf<T>>(), key_room.as<KeyOf<T>>() + total);
  cub::DoubleBuffer<uint32_t> places(place_room.as<uint32_t>(), place_room.as<uint32_t>() + total);
  launch(c, "sort", &make_keys<T>, blocks_for(total, threads), threads, a, keys.Current(), places.Current());
  radix_sort(c, keys, places, total, 8 * int(sizeof(T)));
  if (a.rows.n > 1) {
    auto* room = key_room.as<uint32_t>();
    cub::DoubleBuffer<uint32_t> row_keys(room, room + total);
    launch(c, "sort", &make_row_keys, blocks_for(total, threads), threads, uint32_t(total), a.n, places.Current(),
           room);
    radix_sort(c, row_keys, places, total, std::bit_width(a.rows.n - 1));
  }
  const auto put = sizeof(T) == 1   ? &put_sorted<uint8_t>
                   : sizeof(T) == 2 ? &put_sorted<uint16_t>
                   : sizeof(T) == 4 ? &put_sorted<uint32_t>
                                    : &put_sorted<uint64_t>;
  launch(c, "sort", put, blocks_for(int64_t(a.rows.n) * a.wanted, threads), threads, a, places.Current());
}

struct SearchArgs {
  Strided<3> geometry;  // out, values, sorted
  char* out;
  const char *values, *sorted;
  int64_t n, step;
  bool right;
};

template <class T> __global__ void search_values(const __grid_constant__ SearchArgs a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.geometry.n) return;
  int64_t offset[3];
  offsets(a.geometry, i, offset);
  const auto key = [](const char* p) { return ascending_key<T>(*reinterpret_cast<const Stored<T>*>(p)); };
  const auto value = key(a.values + offset[1]);
  int64_t low = 0, high = a.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto x = key(a.sorted + offset[2] + middle * a.step);
    if (a.right ? x <= value : x < value) low = middle + 1;
    else high = middle;
  }
  *reinterpret_cast<int64_t*>(a.out + offset[0]) = low;
}

}  // namespace

void sort(Context& c, const SortCall& call) {
  const Layout& in = *call.in.layout;
  const Arg* args[] = {&call.in, &call.values, &call.indices};
  const Layout& result = *(call.values.data ? call.values : call.indices).layout;
  const int64_t n = in.rank() > 0 ? in.shape[call.axis] : 1;
  SortArgs a{};
  const int64_t wanted = in.rank() > 0 ? result.shape[call.axis] : 1;
  if (in.numel() == 0 || wanted == 0) return;
  if (n > chunk_limit)
    throw Error(Error::Kind::argument, "sort", "rows of more than 2^30 elements are not sorted on a GPU");
  a.n = uint32_t(n);
  a.begin = uint32_t(call.begin);
  a.wanted = uint32_t(wanted);
  a.descending = call.descending;
  Walk<3> walk;
  for (int i = 0; i < in.rank(); ++i) {
    int64_t strides[3] = {};
    for (int k = 0; k < 3; ++k)
      if (args[k]->data) strides[k] = args[k]->layout->strides[i] * size_of(args[k]->dtype);
    if (i == call.axis) std::copy(strides, strides + 3, a.step);
    else walk.add_axis(in.shape[i], strides);
  }
  walk.finish();
  in_chunks(
      walk,
      [&](const Strided<3>& rows, const auto& base) {
        a.rows = rows;
        for (int k = 0; k < 3; ++k)
          a.data[k] = args[k]->data ? static_cast<char*>(args[k]->data) + base[size_t(k)] : nullptr;
        visit(call.in.dtype, [&]<class T>(TypeTag<T>) { sort_rows<T>(c, a); });
      },
      {}, chunk_limit / n);
}

void search(Context& c, const SearchCall& call) {
  const Layout &out = *call.out.layout, &values = *call.values.layout, &sorted = *call.sorted.layout;
  if (out.numel() == 0) return;
  const int64_t size = size_of(call.values.dtype);
  const int last = out.rank() - 1;
  Walk<3> walk;
  for (int i = 0; i <= last; ++i) {
    const int64_t strides[] = {out.strides[i] * 8, values.strides[i] * size, i == last ? 0 : sorted.strides[i] * size};
    walk.add_axis(out.shape[i], strides);
  }
  walk.finish();
  in_chunks(walk, [&](const Strided<3>& g, const auto& base) {
    const SearchArgs a{g,
                       static_cast<char*>(call.out.data) + base[0],
                       static_cast<const char*>(call.values.data) + base[1],
                       static_cast<const char*>(call.sorted.data) + base[2],
                       sorted.shape[last],
                       sorted.strides[last] * size,
                       call.right};
    visit(call.values.dtype, [&]<class T>(TypeTag<T>) {
      launch(c, "searchsorted", &search_values<T>, blocks_for(g.n, threads), threads, a);
    });
  });
}

}  // namespace volta::cuda
