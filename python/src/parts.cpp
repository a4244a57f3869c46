// Attributes of nn.Module that are parameters, buffers and modules: descriptors, so that Python's own lookup finds them.
// Module.__getattr__ finds them too, but only after that lookup has failed and made an exception of it.
#include "objects.h"

namespace volta::python {
namespace {

// In a class, under the name of a part. It keeps nothing of the modules: what they hold under the name is in their dicts.
struct Part {
  nb::str name;
};

PyObject* kinds[3];

// New, or null; without an exception where there is none of the name.
PyObject* find(PyObject* module, PyObject* name) {
  const nb::object attributes = nb::steal(PyObject_GenericGetDict(module, nullptr));
  if (!attributes.is_valid()) return nullptr;
  for (PyObject* kind : kinds) {
    PyObject* parts = PyDict_GetItemWithError(attributes.ptr(), kind);
    if (!parts || !PyDict_Check(parts)) continue;
    if (PyObject* part = PyDict_GetItemWithError(parts, name)) return Py_NewRef(part);
  }
  return nullptr;
}

PyObject* get(PyObject* self, PyObject* module, PyObject*) noexcept {
  if (!nb::inst_ready(self)) return PyErr_SetString(PyExc_TypeError, "a part without a name"), nullptr;
  PyObject* name = nb::inst_ptr<Part>(self)->name.ptr();
  PyObject* part = module ? find(module, name) : nullptr;
  if (!part && !PyErr_Occurred()) PyErr_SetObject(PyExc_AttributeError, name);  // Module.__getattr__ says more
  return part;
}

const PyType_Slot slots[] = {{Py_tp_descr_get, reinterpret_cast<void*>(get)}, {0, nullptr}};

}  // namespace

void define_parts(nb::module_& m) {
  const char* names[] = {"_parameters", "_buffers", "_modules"};
  for (int i = 0; i < 3; ++i) kinds[i] = PyUnicode_InternFromString(names[i]);
  nb::class_<Part>(m, "_Part", nb::type_slots(slots))
      .def("__init__", [](Part* at, const nb::str& name) { new (at) Part{name}; })
      .def("__getstate__", [](const Part& part) { return part.name; })
      .def("__setstate__", [](Part& at, const nb::str& name) { new (&at) Part{name}; });
}

}  // namespace volta::python
