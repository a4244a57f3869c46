// Ptr: an intrusive counted pointer. T supplies retain(T*) and release(T*), both thread-safe.
#pragma once
#include <utility>

namespace volta::detail {

template <class T> class Ptr {
 public:
  constexpr Ptr() noexcept = default;
  constexpr Ptr(std::nullptr_t) noexcept {}
  static Ptr adopt(T* p) noexcept {  // takes over the reference a new object is born with
    Ptr r;
    r.p_ = p;
    return r;
  }
  static Ptr share(T* p) noexcept {
    if (p) retain(p);
    return adopt(p);
  }
  Ptr(const Ptr& o) noexcept : p_(o.p_) {
    if (p_) retain(p_);
  }
  Ptr(Ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ptr& operator=(const Ptr& o) noexcept {
    Ptr(o).swap(*this);
    return *this;
  }
  Ptr& operator=(Ptr&& o) noexcept {
    Ptr(std::move(o)).swap(*this);
    return *this;
  }
  ~Ptr() {
    if (p_) release(p_);
  }
  void swap(Ptr& o) noexcept { std::swap(p_, o.p_); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const Ptr& a, const Ptr& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace volta::detail
