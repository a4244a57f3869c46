// Python's callables inside C++ functions, which may be copied and destroyed without the interpreter's lock.
#pragma once
#include <memory>

#include "objects.h"

namespace volta::python {

class Callback {
 public:
  explicit Callback(nb::handle callable)
      : object_(callable.inc_ref().ptr(), [](PyObject* o) {
          if (!Py_IsInitialized()) return;
          const nb::gil_scoped_acquire locked;
          Py_DECREF(o);
        }) {}
  // With the lock held.
  nb::object operator()(const nb::object& argument) const { return nb::handle(object_.get())(argument); }
  nb::handle handle() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace volta::python
