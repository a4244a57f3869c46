// Data sets: what one is, and the ones made of others: tensors, subset, concat, map, random_split.
#pragma once
#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/random.h>
#include <volta/tensor.h>

namespace volta::data {

// Any type with size() and get(i) is a data set. Items are tensors, numbers, tuples of them, or structs of tensors.
// Sets are values and cheap to copy: those here share what they hold. get() is called from several threads at once.
template <class S>
concept Dataset = requires(const S& set, int64_t i) {
  { set.size() } -> std::convertible_to<int64_t>;
  set.get(i);
};
// A set that is read from its beginning to its end: next() gives an optional item, reset(epoch) starts again.
template <class S>
concept StreamingDataset = std::copyable<S> && requires(S& set, int64_t epoch) {
  { set.next().has_value() } -> std::convertible_to<bool>;
  *set.next();
  set.reset(epoch);
};
template <class S>
concept AnyKindOfDataset = Dataset<S> || StreamingDataset<S>;

namespace detail {

template <class S> auto item_type() {
  if constexpr (Dataset<S>) return std::type_identity<std::remove_cvref_t<decltype(std::declval<const S&>().get(0))>>();
  else return std::type_identity<std::remove_cvref_t<decltype(*std::declval<S&>().next())>>();
}

template <class T> inline constexpr bool is_tuple = false;
template <class... T> inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B> inline constexpr bool is_tuple<std::pair<A, B>> = true;

[[noreturn]] void throw_empty(const char* set);             // of one that was moved from, or of a function that is none
void check_item(int64_t i, int64_t size, const char* set);  // throws an Error of kind index
int64_t end_of(int64_t begin, int64_t size);                // of a part of concat; an Error where no number holds it
int64_t first_size(int64_t size, double first);
std::vector<int64_t> part_sizes(int64_t size, std::span<const double> parts);
std::vector<int64_t> shuffled(int64_t size, std::optional<uint64_t> seed);
Tensor rows_of(const Tensor& x, std::span<const int64_t> rows);
void check_rows(std::span<const Tensor> tensors);

template <class F> inline constexpr bool may_be_empty = std::is_pointer_v<F>;
template <class R, class... Args> inline constexpr bool may_be_empty<std::function<R(Args...)>> = true;
template <class F> const F& given(const F& f, const char* set) {
  if constexpr (may_be_empty<F>)
    if (!f) throw_empty(set);
  return f;
}

template <class F, class... Args> decltype(auto) with_generator(const F& f, Args&&... args) {
  (void)given(f, "map");
  if constexpr (std::is_invocable_v<const F&, Args..., Generator&>)
    return f(std::forward<Args>(args)..., default_generator());
  else return f(std::forward<Args>(args)...);
}
template <class F, class... Args> inline constexpr bool takes =
    std::is_invocable_v<const F&, Args...> || std::is_invocable_v<const F&, Args..., Generator&>;
template <class F, class Item> inline constexpr bool takes_parts = false;
template <class F, class... T> inline constexpr bool takes_parts<F, std::tuple<T...>> = takes<F, T...>;
template <class F, class A, class B> inline constexpr bool takes_parts<F, std::pair<A, B>> = takes<F, A, B>;

// f(item) or, of a tuple, f(part, part…); with the generator to draw from where f takes one.
template <class F, class Item> decltype(auto) transformed(const F& f, Item&& item) {
  if constexpr (takes_parts<F, std::remove_cvref_t<Item>>)
    return std::apply([&](auto&&... parts) { return with_generator(f, std::forward<decltype(parts)>(parts)...); },
                      std::forward<Item>(item));
  else return with_generator(f, std::forward<Item>(item));
}

}  // namespace detail

template <class S> using Item = typename decltype(detail::item_type<S>())::type;

// Tensors of one length: TensorDataset(images, labels) has the items {images[i], labels[i]}.
template <size_t N> class TensorDataset {
 public:
  template <std::convertible_to<Tensor>... T>
  requires(sizeof...(T) == N) explicit TensorDataset(const T&... tensors) : tensors_{tensors...} {
    detail::check_rows(tensors_);
  }
  int64_t size() const { return tensors_[0].size(0); }
  auto get(int64_t i) const {
    detail::check_item(i, size(), "TensorDataset");
    return each([i](const Tensor& x) { return x.select(0, i); });
  }
  // All items of a batch at once.
  auto get_batch(std::span<const int64_t> items) const {
    return each([items](const Tensor& x) { return detail::rows_of(x, items); });
  }
  const std::array<Tensor, N>& tensors() const& { return tensors_; }
  std::array<Tensor, N> tensors() && { return std::move(tensors_); }

 private:
  template <class F> auto each(const F& f) const {
    return std::apply([&](const auto&... x) { return std::tuple(f(x)...); }, tensors_);
  }
  std::array<Tensor, N> tensors_;
};
template <class... T> TensorDataset(const T&...) -> TensorDataset<sizeof...(T)>;

// Some items of a set, in the order given: subset(set, {0, 2, 4}).
template <Dataset S> class Subset {
 public:
  Subset(S set, std::vector<int64_t> items)
      : set_(std::move(set)), items_(std::make_shared<const std::vector<int64_t>>(std::move(items))) {
    for (const int64_t i : *items_) detail::check_item(i, set_.size(), "subset");
  }
  int64_t size() const { return int64_t(indices().size()); }
  auto get(int64_t i) const {
    detail::check_item(i, size(), "subset");
    return set_.get((*items_)[size_t(i)]);
  }
  template <class F> auto get_for(int64_t i, const F& f) const requires requires(const S& set) { set.get_for(i, f); }
  {
    detail::check_item(i, size(), "subset");
    return set_.get_for((*items_)[size_t(i)], f);
  }
  auto get_batch(std::span<const int64_t> items) const requires requires(const S& set) { set.get_batch(items); }
  {
    std::vector<int64_t> inner(items.begin(), items.end());
    for (int64_t& i : inner) {
      detail::check_item(i, size(), "subset");
      i = (*items_)[size_t(i)];
    }
    return set_.get_batch(inner);
  }
  const std::vector<int64_t>& indices() const& {
    if (!items_) detail::throw_empty("subset");
    return *items_;
  }
  std::vector<int64_t> indices() && { return static_cast<const Subset&>(*this).indices(); }

 private:
  S set_;
  std::shared_ptr<const std::vector<int64_t>> items_;
};
template <Dataset S> Subset<S> subset(S set, std::vector<int64_t> items) { return {std::move(set), std::move(items)}; }

// Any set whose items are of one type: AnyDataset<Tensor> set = cond ? AnyDataset<Tensor>(a) : b.
template <class T> class AnyDataset {
 public:
  template <Dataset S>
  requires(!std::same_as<S, AnyDataset> && std::convertible_to<Item<S>, T>) AnyDataset(S set)
      : set_(std::make_shared<const Model<S>>(std::move(set))) {}
  int64_t size() const { return held().size(); }
  T get(int64_t i) const { return held().get(i); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual int64_t size() const = 0;
    virtual T get(int64_t i) const = 0;
  };
  template <class S> struct Model final : Concept {
    explicit Model(S s) : set(std::move(s)) {}
    int64_t size() const override { return set.size(); }
    T get(int64_t i) const override { return set.get(i); }
    S set;
  };
  const Concept& held() const {
    if (!set_) detail::throw_empty("AnyDataset");
    return *set_;
  }
  std::shared_ptr<const Concept> set_;
};

// Sets one after the other: concat(a, b, c). Their items are of one type.
template <class T> class Concat {
 public:
  explicit Concat(std::vector<AnyDataset<T>> sets) : sets_(std::move(sets)) {
    for (const auto& set : sets_) ends_.push_back(detail::end_of(size(), set.size()));
  }
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  T get(int64_t i) const {
    detail::check_item(i, size(), "concat");
    size_t which = 0;
    while (i >= ends_[which]) ++which;
    return sets_[which].get(which == 0 ? i : i - ends_[which - 1]);
  }

 private:
  std::vector<AnyDataset<T>> sets_;
  std::vector<int64_t> ends_;
};
template <Dataset S, Dataset... More> auto concat(S first, More... more) {
  return Concat<Item<S>>({AnyDataset<Item<S>>(std::move(first)), AnyDataset<Item<S>>(std::move(more))...});
}

// A set whose items are f(item), or f(item, generator) where f is random. A set with get_for(i, f) is asked for that: it
// may read less when it knows what becomes of the item.
template <Dataset S, class F> class Mapped {
 public:
  Mapped(S set, F f) : set_(std::move(set)), f_(std::move(f)) { (void)detail::given(f_, "map"); }
  int64_t size() const { return set_.size(); }
  auto get(int64_t i) const {
    if constexpr (requires { set_.get_for(i, f_); }) return set_.get_for(i, f_);
    else return detail::transformed(f_, set_.get(i));
  }

 private:
  S set_;
  F f_;
};
template <StreamingDataset S, class F> class MappedStream {
 public:
  MappedStream(S set, F f) : set_(std::move(set)), f_(std::move(f)) { (void)detail::given(f_, "map"); }
  auto next() {
    auto item = set_.next();
    using Result = std::remove_cvref_t<decltype(detail::transformed(f_, std::move(*item)))>;
    return item ? std::optional<Result>(detail::transformed(f_, std::move(*item))) : std::nullopt;
  }
  void reset(int64_t epoch) { set_.reset(epoch); }

 private:
  S set_;
  F f_;
};
// map(set, [](const Tensor& x, const Tensor& y) { return std::tuple(x / 255, y); }); f may take a Generator& last.
template <AnyKindOfDataset S, class F> auto map(S set, F f) {
  if constexpr (Dataset<S>) return Mapped<S, F>(std::move(set), std::move(f));
  else return MappedStream<S, F>(std::move(set), std::move(f));
}

// f of the first part of a tuple; the others stay: map(set, on_first(normalize({0.5}, {0.5}))).
template <class F> class OnFirst {
 public:
  explicit OnFirst(F f) : f_(std::move(f)) { (void)detail::given(f_, "on_first"); }
  const F& function() const { return f_; }
  template <class... T> auto operator()(std::tuple<T...> item, Generator& g) const { return replaced(item, g); }
  template <class A, class B> auto operator()(std::pair<A, B> item, Generator& g) const {
    auto& [first, second] = item;
    return std::pair(call(std::move(first), g), std::move(second));
  }

 private:
  template <class T> auto call(T first, Generator& g) const {
    (void)detail::given(f_, "on_first");
    if constexpr (std::is_invocable_v<const F&, T, Generator&>) return f_(std::move(first), g);
    else return f_(std::move(first));
  }
  template <class First, class... Rest> auto replaced(std::tuple<First, Rest...>& item, Generator& g) const {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple(call(std::move(std::get<0>(item)), g), std::move(std::get<I + 1>(item))...);
    }
    (std::index_sequence_for<Rest...>());
  }
  F f_;
};
template <class F> OnFirst<F> on_first(F f) { return OnFirst<F>(std::move(f)); }

struct SplitOptions {
  std::optional<uint64_t> seed = {};  // drawn from the default generator where not given
};
// auto [train, test] = random_split(set, 0.8, {.seed = 4}): the share, or above 1 the number, of items in the first.
template <Dataset S>
std::pair<Subset<S>, Subset<S>> random_split(const S& set, double first, const SplitOptions& options = {}) {
  const int64_t size = detail::first_size(set.size(), first);
  const std::vector<int64_t> order = detail::shuffled(set.size(), options.seed);
  const auto middle = order.begin() + size;
  return {subset(set, {order.begin(), middle}), subset(set, {middle, order.end()})};
}
// random_split(set, {0.8, 0.1, 0.1}) or, by sizes, random_split(set, {800, 100, 100}).
template <Dataset S>
std::vector<Subset<S>> random_split(const S& set, const std::vector<double>& parts, const SplitOptions& options = {}) {
  const std::vector<int64_t> sizes = detail::part_sizes(set.size(), parts);
  const std::vector<int64_t> order = detail::shuffled(set.size(), options.seed);
  std::vector<Subset<S>> result;
  auto begin = order.begin();
  for (const int64_t size : sizes) {
    result.push_back(subset(set, {begin, begin + size}));
    begin += size;
  }
  return result;
}

}  // namespace volta::data
