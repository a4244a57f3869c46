// Gather: elements, or whole rows where the index repeats along them, picked along one axis.
#include <cstring>
#include <limits>
#include <mutex>

#include "backend/cpu/cpu.h"
#include "backend/cpu/split.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 1 << 15;

struct Plan {
  Walk<3> walk;  // out, in (standing still along the indexed axis), index
  char* out;
  const char *in, *index;
  int64_t axis_size, axis_stride;  // of `in`, in bytes
};

Plan make_plan(const GatherCall& call) {
  const Layout &out = *call.out.layout, &in = *call.in.layout, &index = *call.index.layout;
  const int64_t size = size_of(call.out.dtype);
  Plan p{{},
         static_cast<char*>(call.out.data),
         static_cast<const char*>(call.in.data),
         static_cast<const char*>(call.index.data),
         in.shape[call.axis],
         in.strides[call.axis] * size};
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t strides[] = {out.strides[i] * size, i == call.axis ? 0 : in.strides[i] * size,
                               index.strides[i] * int64_t(sizeof(int64_t))};
    p.walk.add_axis(out.shape[i], strides);
  }
  p.walk.finish();
  return p;
}

int64_t index_at(const char* index, int64_t axis_size) {
  const int64_t i = *reinterpret_cast<const int64_t*>(index);
  return i < 0 ? i + axis_size : i;
}

// With the steps as constants the compiler keeps addresses in registers.
template <class Word, bool Plain> void pick(const Plan& p, char* out, const char* in, const char* index, int64_t n) {
  const int64_t out_step = Plain ? int64_t(sizeof(Word)) : p.walk.stride[0][0], in_step = p.walk.stride[0][1];
  const int64_t index_step = Plain ? int64_t(sizeof(int64_t)) : p.walk.stride[0][2];
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = index_at(index + k * index_step, p.axis_size);
    *reinterpret_cast<Word*>(out + k * out_step) = *reinterpret_cast<const Word*>(in + k * in_step + i * p.axis_stride);
  }
}

// Rows picked one after another, as index_select and embedding do: the next ones are on their way while one is copied.
void copy_rows(const Plan& p, int64_t bytes) {
  constexpr int64_t line = 64, ahead = 2, most = 1024;
  const int64_t rows = p.walk.size[1], out_step = p.walk.stride[1][0], in_step = p.walk.stride[1][1],
                index_step = p.walk.stride[1][2];
  const auto source = [&](int64_t r) {
    return p.in + r * in_step + index_at(p.index + r * index_step, p.axis_size) * p.axis_stride;
  };
  const int64_t each = std::max<int64_t>(1, (int64_t(1) << 17) / bytes), fetched = std::min(bytes, most);
  parallel((rows + each - 1) / each, [&](int64_t part) {
    const int64_t end = std::min(rows, (part + 1) * each);
    for (int64_t r = part * each; r < end; ++r) {
      if (r + ahead < end) {
        const char* next = source(r + ahead);
        for (int64_t i = 0; i < fetched; i += line) __builtin_prefetch(next + i);
      }
      std::memcpy(p.out + r * out_step, source(r), size_t(bytes));
    }
  });
}

template <class Word> void run(const Plan& p) {
  const int64_t* step = p.walk.stride[0];
  const bool same_index = step[2] == 0;
  const bool whole = same_index && step[0] == int64_t(sizeof(Word)) && step[1] == int64_t(sizeof(Word));
  const int64_t bytes = p.walk.size[0] * int64_t(sizeof(Word));
  if (whole && p.walk.rank == 2 && bytes <= int64_t(1) << 17) return copy_rows(p, bytes);
  const bool plain = step[0] == int64_t(sizeof(Word)) && step[2] == int64_t(sizeof(int64_t));
  parallel_rows(p.walk, grain, [&](const int64_t* offset, int64_t begin, int64_t n) {
    char* out = p.out + offset[0] + begin * step[0];
    const char *in = p.in + offset[1] + begin * step[1], *index = p.index + offset[2] + begin * step[2];
    if (whole) std::memcpy(out, in + index_at(index, p.axis_size) * p.axis_stride, size_t(n) * sizeof(Word));
    else if (plain) pick<Word, true>(p, out, in, index, n);
    else pick<Word, false>(p, out, in, index, n);
  });
}

}  // namespace

void gather(const GatherCall& call) {
  if (call.out.layout->numel() == 0) return;
  const Plan p = make_plan(call);
  switch (size_of(call.out.dtype)) {
    case 1: return run<uint8_t>(p);
    case 2: return run<uint16_t>(p);
    case 4: return run<uint32_t>(p);
    default: return run<uint64_t>(p);
  }
}

IndexRange index_range(const Arg& index) {
  const Layout& l = *index.layout;
  const auto* data = static_cast<const char*>(index.data);
  Walk<1> walk;
  for (int i = 0; i < l.rank(); ++i) {
    const int64_t stride = l.strides[i] * int64_t(sizeof(int64_t));
    if (stride != 0) walk.add_axis(l.shape[i], &stride);  // repeated elements are looked at once
  }
  walk.finish();
  IndexRange all{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  std::mutex mutex;
  parallel_rows(walk, 2 * grain, [&](const int64_t* offset, int64_t begin, int64_t n) {
    const int64_t step = walk.stride[0][0];
    const char* row = data + offset[0] + begin * step;
    IndexRange found{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = *reinterpret_cast<const int64_t*>(row + k * step);
      found = {std::min(found.low, i), std::max(found.high, i)};
    }
    const std::lock_guard lock(mutex);
    all = {std::min(all.low, found.low), std::max(all.high, found.high)};
  });
  return all;
}

}  // namespace volta::cpu
