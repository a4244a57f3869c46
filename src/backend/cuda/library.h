// Libraries that are loaded when they are first needed: linked, they would cost every program hundreds of MB and tens of
// milliseconds at its start.
#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>

#include "core/check.h"

namespace volta::cuda {

class Library {
 public:
  // By name, then from the folder the toolkit was found in. Where there is none, loaded() is false.
  explicit Library(std::string name) : name_(std::move(name)) {
    for (const std::string& path : {name_, VOLTA_CUDA_LIBRARY_DIR "/" + name_})
      if ((handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))) return;
    if (const char* why = dlerror()) why_ = why;
  }
  bool loaded() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  const std::string& why() const { return why_; }

  // Converts to a pointer to whatever function it is asked for.
  struct Symbol {
    void* found;
    template <class F> operator F*() const { return reinterpret_cast<F*>(found); }
  };
  Symbol symbol(const char* function, const char* op) const {
    require(loaded(), ErrorKind::device, op, "cannot load ", name_, ": ", why_);
    void* found = dlsym(handle_, function);
    require(found != nullptr, ErrorKind::device, op, name_, " has no ", function);
    return {found};
  }

 private:
  std::string name_, why_;
  void* handle_ = nullptr;
};

const Library& cublas_library();
const Library& cudnn_library();  // in builds that found cudnn.h

}  // namespace volta::cuda
