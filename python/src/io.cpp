// Files of weights: safetensors, torch.save's, npy and npz.
#include <nanobind/stl/string.h>

#include <volta/io.h>

#include "objects.h"

namespace volta::python {
namespace {

nb::dict to_python(const StateDict& state) {
  nb::dict d;
  for (const auto& [name, x] : state) d[name.c_str()] = nb::cast(x);
  return d;
}
StateDict state_from(const nb::dict& d) {
  StateDict state;
  for (const auto& [name, value] : d) {
    const Tensor* x = tensor_in(value.ptr());
    if (!x) raise(PyExc_TypeError, "a state holds Tensors by name; '" + nb::cast<std::string>(name) + "' is none");
    state.add(nb::cast<std::string>(name), x->detach());
  }
  return state;
}
Metadata texts_from(const nb::dict& d) {
  Metadata texts;
  for (const auto& [name, value] : d) texts.add(nb::cast<std::string>(name), nb::cast<std::string>(value));
  return texts;
}

nb::object to_python(const TorchValue& v) {
  using K = TorchValue::Kind;
  switch (v.kind()) {
    case K::none: return nb::none();
    case K::truth: return nb::bool_(v.as_boolean());
    case K::integer: return nb::int_(v.as_integer());
    case K::real: return nb::float_(v.as_number());
    case K::string: return nb::str(v.as_string().c_str());
    case K::tensor: return nb::cast(v.as_tensor());
    case K::dict: {
      nb::dict d;
      for (const auto& [key, value] : v.entries()) d[to_python(key)] = to_python(value);
      return d;
    }
    default: {
      nb::list list;
      for (const TorchValue& item : v.items()) list.append(to_python(item));
      return v.is(K::tuple) ? nb::object(nb::tuple(list)) : nb::object(list);
    }
  }
}
// A list may hold itself.
struct Deeper {
  Deeper() {
    if (Py_EnterRecursiveCall(" in volta.save")) throw ErrorIsSet();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

TorchValue torch_value(nb::handle o) {
  const Deeper deeper;
  if (o.is_none()) return {};
  if (const Tensor* x = tensor_in(o.ptr())) return TorchValue(x->detach());
  if (PyBool_Check(o.ptr())) return TorchValue(o.ptr() == Py_True);
  if (PyLong_Check(o.ptr())) {
    const long long n = PyLong_AsLongLong(o.ptr());
    if (n == -1 && PyErr_Occurred()) throw ErrorIsSet();
    return TorchValue(int64_t(n));
  }
  if (PyFloat_Check(o.ptr())) return TorchValue(nb::cast<double>(o));
  if (PyUnicode_Check(o.ptr())) return TorchValue(nb::cast<std::string>(o));
  if (nb::isinstance<nb::dict>(o)) {
    std::vector<TorchValue::Entry> entries;
    for (const auto& [key, value] : nb::borrow<nb::dict>(o)) entries.emplace_back(torch_value(key), torch_value(value));
    return TorchValue::dict(std::move(entries));
  }
  if (!PyList_Check(o.ptr()) && !PyTuple_Check(o.ptr()))
    raise(PyExc_TypeError,
          std::string("a file of torch.save holds None, numbers, texts, Tensors, lists, tuples and dicts, not ") +
              type_name_of(o.ptr()));
  std::vector<TorchValue> items;
  for (const nb::handle item : o) items.push_back(torch_value(item));
  return PyTuple_Check(o.ptr()) ? TorchValue::tuple(std::move(items)) : TorchValue::list(std::move(items));
}

}  // namespace

void define_io(nb::module_& m) {
  m.def("_read_state", [](const std::string& path) {
    StateDict state = (Unlocked(), read_state(path));
    return to_python(state);
  });
  m.def("_read_torch", [](const std::string& path) {
    const TorchValue value = (Unlocked(), read_torch_value(path));
    return to_python(value);
  });
  m.def("_write_torch", [](const std::string& path, nb::handle value) {
    const TorchValue v = torch_value(value);
    const Unlocked unlocked;
    write_torch(path, v);
  });
  m.def("_write_safetensors", [](const std::string& path, const nb::dict& state, const nb::dict& metadata) {
    const StateDict s = state_from(state);
    const Metadata texts = texts_from(metadata);
    const Unlocked unlocked;
    write_safetensors(path, s, texts);
  });
  m.def("_safetensors_metadata", [](const std::string& path) {
    nb::dict d;
    for (const auto& [name, text] : read_safetensors_metadata(path)) d[name.c_str()] = nb::str(text.c_str());
    return d;
  });
  m.def("_read_npy", [](const std::string& path) { return read_npy(path); });
  m.def("_write_npy", [](const std::string& path, const Tensor& x) { write_npy(path, x); });
  m.def("_write_npz", [](const std::string& path, const nb::dict& state) { write_npz(path, state_from(state)); });
}

}  // namespace volta::python
