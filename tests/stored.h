// Matrices that lie in memory in several ways, filled with random numbers: operands of products.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

namespace volta::cpu {

template <class T> constexpr bool floating_type = !std::is_integral_v<T>;

// How a matrix lies in memory.
enum class Order { rows, columns, gaps, reversed, both_strided, repeated_rows };
constexpr Order orders[] = {Order::rows, Order::columns, Order::gaps, Order::reversed, Order::both_strided};

template <class T> struct Stored {
  std::vector<T> data;
  int64_t origin = 0, row_stride = 0, column_stride = 0, batch_stride = 0;

  Stored(int64_t batch, int64_t rows, int64_t columns, Order order) {
    switch (order) {
      case Order::rows: row_stride = columns, column_stride = 1; break;
      case Order::columns: row_stride = 1, column_stride = rows; break;
      case Order::gaps: row_stride = columns + 3, column_stride = 1; break;
      case Order::reversed: row_stride = -columns, column_stride = 1, origin = (rows - 1) * columns; break;
      case Order::both_strided: row_stride = 2 * columns + 1, column_stride = 2; break;
      case Order::repeated_rows: row_stride = 0, column_stride = 1; break;
    }
    batch_stride = (rows + 1) * (2 * columns + 3);
    origin = std::max<int64_t>(origin, 0);
    data.resize(size_t(batch * batch_stride + 8));
  }
  T& at(int64_t b, int64_t i, int64_t j) {
    return data[size_t(origin + b * batch_stride + i * row_stride + j * column_stride)];
  }
  T* start() { return data.data() + origin; }
};

template <class T> void fill(std::vector<T>& v, std::mt19937& random) {
  if constexpr (std::is_same_v<T, bool>) {
    static_assert(!std::is_same_v<T, bool>, "boolean tests use uint8_t storage");
  } else if constexpr (floating_type<T> || std::is_floating_point_v<T>) {
    std::uniform_real_distribution<float> d(-1, 1);
    for (T& x : v) x = T(d(random));
  } else {
    for (T& x : v) x = T(random());
  }
}

}  // namespace volta::cpu
