// volta.Error and the classes below it, one for each kind, which are also what Python expects: ValueError, IndexError, …
#include <volta/print.h>

#include "objects.h"

namespace volta::python {
namespace {

constexpr int kinds = 9;
PyObject* error_classes[kinds];
// The text for nanobind's failed casts, which say no more.
constexpr const char* wrong_type = "an argument, or what a function of Python returned, is of a type that does not fit";

PyObject* base_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::shape:
    case Error::Kind::argument: return PyExc_ValueError;
    case Error::Kind::dtype: return PyExc_TypeError;
    case Error::Kind::index: return PyExc_IndexError;
    case Error::Kind::memory: return PyExc_MemoryError;
    case Error::Kind::io: return PyExc_OSError;
    default: return PyExc_RuntimeError;
  }
}

// Texts of the library name options as C++ writes them: {.retain_graph = true} is retain_graph=True here.
std::string as_python(std::string text) {
  constexpr std::string_view open = "{.", truth = " = true}";
  for (size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
    const size_t end = text.find(truth, at);
    if (end == std::string::npos || text.find('}', at) < end) continue;
    text.replace(end, truth.size(), "=True");
    text.erase(at, open.size());
  }
  return text;
}

void set_error(const Error& e) {
  PyObject* type = error_classes[int(e.kind())];
  const nb::object error = nb::steal(PyObject_CallFunction(type, "s", as_python(e.what()).c_str()));
  if (!error.is_valid()) return;
  error.attr("kind") = nb::str(std::string(name(e.kind())).c_str());
  error.attr("op") = nb::str(e.op().c_str());
  PyErr_SetObject(type, error.ptr());
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (const ErrorIsSet&) {
  } catch (const Error& e) {
    set_error(e);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, wrong_type);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void define_errors(nb::module_& m) {
  PyObject* base =
      PyErr_NewExceptionWithDoc("volta.Error", "What went wrong: .kind, .op and a text.", nullptr, nullptr);
  if (!base) throw nb::python_error();
  nb::handle(base).attr("kind") = nb::none();
  nb::handle(base).attr("op") = nb::none();
  m.attr("Error") = nb::steal(base);
  for (int i = 0; i < kinds; ++i) {
    const Error::Kind kind = Error::Kind(i);
    std::string title(name(kind));
    title[0] = char(std::toupper(title[0]));
    if (kind == Error::Kind::dtype) title = "DType";
    if (kind == Error::Kind::io) title = "IO";
    const nb::tuple bases = nb::make_tuple(nb::handle(base), nb::handle(base_of(kind)));
    error_classes[i] = PyErr_NewException(("volta." + title + "Error").c_str(), bases.ptr(), nullptr);
    if (!error_classes[i]) throw nb::python_error();
    m.attr((title + "Error").c_str()) = nb::handle(error_classes[i]);
  }
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      set_error(e);
    } catch (const ErrorIsSet&) {
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, wrong_type);
    }
  });
}

}  // namespace volta::python
