// default_collate: items become a batch. Tensors are stacked, numbers become a tensor, tuples and structs go by parts.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <volta/aggregate_fields.h>
#include <volta/create.h>
#include <volta/data/dataset.h>

namespace volta::data {

namespace detail {

// Stacks tensors of one shape and dtype; where they differ the Error names both items.
Tensor stack_items(std::span<const Tensor> tensors, std::span<const int64_t> items);

template <class T> constexpr size_t fields = reflect::count_fields<T>();
template <class T> constexpr bool is_struct() {
  if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>) return fields<T> > 0 && fields<T> <= 32;
  else return false;
}
template <class... T> constexpr bool all_tensors(std::type_identity<std::tuple<T&...>>) {
  return (std::is_same_v<T, Tensor> && ...);
}
template <class T> using Fields = decltype(reflect::tie_fields<fields<T>>(std::declval<T&>()));

template <class T> auto collate(std::vector<T>& items, std::span<const int64_t> indices);

template <size_t I, class T> auto collate_part(std::vector<T>& items, std::span<const int64_t> indices) {
  const auto part = [](T & item) -> auto& {
    if constexpr (is_tuple<T>) return std::get<I>(item);
    else return std::get<I>(reflect::tie_fields<fields<T>>(item));
  };
  std::vector<std::remove_reference_t<decltype(part(items[0]))>> column;
  column.reserve(items.size());
  for (T& item : items) column.push_back(std::move(part(item)));
  return collate(column, indices);
}

template <class T> auto collate(std::vector<T>& items, std::span<const int64_t> indices) {
  if constexpr (std::is_convertible_v<T, Tensor> && std::is_class_v<T>) {
    if constexpr (std::is_same_v<T, Tensor>) return stack_items(items, indices);
    else return stack_items(std::vector<Tensor>(items.begin(), items.end()), indices);
  } else if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>) {
    return tensor(items, {items.size()}, {.device = Device()});
  } else if constexpr (std::is_integral_v<T>) {
    return tensor(std::vector<int64_t>(items.begin(), items.end()), {items.size()}, {.device = Device()});
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::move(items);
  } else if constexpr (is_tuple<T>) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return std::tuple{collate_part<I>(items, indices)...}; }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    static_assert(is_struct<T>(),
                  "default_collate knows tensors, numbers, strings, tuples and plain structs of these; for other items "
                  "give the loader a function of one's own: DataLoader(set, options, collate)");
    return [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (all_tensors(std::type_identity<Fields<T>>())) return T{collate_part<I>(items, indices)...};
      else return std::tuple{collate_part<I>(items, indices)...};
    }
    (std::make_index_sequence<fields<T>>());
  }
}

}  // namespace detail

// A batch of the items: default_collate(std::vector{a, b}) of tensors is stack({a, b}). Whole numbers become i64; a
// struct of tensors stays that struct, one with other parts becomes a tuple.
template <class T> auto default_collate(std::vector<T> items) { return detail::collate(items, {}); }

}  // namespace volta::data
