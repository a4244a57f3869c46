// IntrusivePtr: an intrusive counted pointer. T supplies retain(T*) and release(T*), both thread-safe.
#pragma once
#include <utility>

namespace volta::detail {

template <class T> class IntrusivePtr {
 public:
  constexpr IntrusivePtr() noexcept = default;
  constexpr IntrusivePtr(std::nullptr_t) noexcept {}
  static IntrusivePtr adopt(T* p) noexcept {  // takes over the reference a new object is born with
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }
  static IntrusivePtr share(T* p) noexcept {
    if (p) retain(p);
    return adopt(p);
  }
  IntrusivePtr(const IntrusivePtr& o) noexcept : p_(o.p_) {
    if (p_) retain(p_);
  }
  IntrusivePtr(IntrusivePtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  IntrusivePtr& operator=(const IntrusivePtr& o) noexcept {
    IntrusivePtr(o).swap(*this);
    return *this;
  }
  IntrusivePtr& operator=(IntrusivePtr&& o) noexcept {
    IntrusivePtr(std::move(o)).swap(*this);
    return *this;
  }
  ~IntrusivePtr() {
    if (p_) release(p_);
  }
  void swap(IntrusivePtr& o) noexcept { std::swap(p_, o.p_); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace volta::detail
