// x[…] and x[…] = v: Python's subscripts as the library's.
#include <volta/ops.h>

#include "objects.h"
#include "ops/subscript.h"

namespace volta::python {
namespace {

std::optional<int64_t> bound(PyObject* o) {
  if (o == Py_None) return {};
  const nb::object whole = nb::steal(PyNumber_Index(o));
  if (!whole.is_valid()) throw ErrorIsSet();
  // As in Python, a bound beyond any length stands for that end.
  const Py_ssize_t n = PyNumber_AsSsize_t(whole.ptr(), nullptr);
  if (n == -1 && PyErr_Occurred()) throw ErrorIsSet();
  return n;
}

Index slice_from(PyObject* o) {
  const nb::handle s(o);
  const auto begin = bound(nb::object(s.attr("start")).ptr()), end = bound(nb::object(s.attr("stop")).ptr());
  const auto step = bound(nb::object(s.attr("step")).ptr());
  return Index(volta::slice(begin, end, step.value_or(1)));
}

Index index_from(PyObject* o) {
  if (const Tensor* x = tensor_in(o)) return Index(*x);
  if (PyBool_Check(o)) return Index(volta::tensor(o == Py_True));
  if (PySlice_Check(o)) return slice_from(o);
  if (o == Py_Ellipsis) return Index(ellipsis);
  if (o == Py_None) return Index(newaxis);
  if (is_integer(o)) {
    const Py_ssize_t n = PyNumber_AsSsize_t(o, PyExc_IndexError);
    if (n == -1 && PyErr_Occurred()) throw ErrorIsSet();
    return Index(int64_t(n));
  }
  if (PyList_Check(o) || PyTuple_Check(o) || is_range(o) || has_buffer(o)) {
    const Tensor list = tensor_of(o, {}, "cpu");
    return Index(list.numel() == 0 && is_floating(list.dtype()) ? list.to(i64) : list);
  }
  raise(
      PyExc_TypeError,
      std::string("index: a tensor takes ints, slices, None, ..., masks and lists of indices, not ") + type_name_of(o));
}

// The array API lets an axis of a mask have size 0 whatever the size of the tensor's: nothing is selected.
bool selects_nothing(const Tensor& mask, const Tensor& x) {
  if (!mask.defined() || mask.dtype() != boolean || mask.numel() > 0 || mask.dim() > x.dim()) return false;
  for (int i = 0; i < mask.dim(); ++i)
    if (mask.size(i) != 0 && mask.size(i) != x.size(i)) return false;
  return true;
}

std::vector<Index> indices_from(PyObject* key, const Tensor& x) {
  std::vector<Index> list;
  const auto add = [&](PyObject* o) {
    list.push_back(index_from(o));
    Tensor& t = list.back().tensor;
    if (t.defined() && t.device() != x.device()) t = t.to(x.device());
  };
  if (!PyTuple_Check(key)) {
    add(key);
    const Tensor mask = list.front().tensor;
    if (selects_nothing(mask, x))
      list.assign(size_t(mask.dim()), Index(zeros({0}, {.dtype = i64, .device = x.device()})));
    return list;
  }
  const Py_ssize_t n = PyTuple_Size(key);
  for (Py_ssize_t i = 0; i < n; ++i) add(PyTuple_GetItem(key, i));
  return list;
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  try {
    const Tensor& x = handle_of(self);
    if (PyLong_CheckExact(key)) {
      const Index index = index_from(key);
      return wrap(Tensor(subscript(x, std::span(&index, 1))));
    }
    const std::vector<Index> indices = indices_from(key, x);
    Tensor y = (Unlocked(work_of(x) >= long_work), subscript(x, indices));
    return wrap(std::move(y));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  try {
    const Tensor& x = handle_of(self);
    if (!value) raise(PyExc_TypeError, "elements of a tensor cannot be deleted");
    const std::vector<Index> indices = indices_from(key, x);
    const Tensor* tensor = tensor_in(value);
    const auto scalar = tensor ? std::nullopt : maybe_scalar(value);
    if (tensor || scalar) {
      (Unlocked(work_of(x) >= long_work), assign_subscript(x, indices, tensor ? Operand(*tensor) : Operand(*scalar)));
      return 0;
    }
    const Tensor made = tensor_of(value, {}, x.device());
    assign_subscript(x, indices, made);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace volta::python
