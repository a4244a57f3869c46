// volta.Tensor: its operators as slots of the type, which cost less than calls of methods, and its properties.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <sstream>

#include "callback.h"
#include "core/impl.h"
#include "objects.h"

namespace volta::python {

int64_t work_of(const Tensor& x) {
  if (!x.defined()) return 0;
  const TensorImpl& t = x.impl();
  if (!t.storage->device.is_cpu()) return long_work;
  int64_t count = 1;
  for (const int64_t n : t.layout.shape) count *= n;
  return count;
}

Tensor moved(const Tensor& x, const Device& device, std::optional<DType> dtype, bool, bool copy) {
  const Tensor y = x.to(dtype.value_or(x.dtype())).to(device);
  return copy && y.shares_storage(x) ? y.clone() : y;
}
Tensor moved(const Tensor& x, DType dtype, const std::optional<Device>& device, bool non_blocking, bool copy) {
  return moved(x, device.value_or(x.device()), dtype, non_blocking, copy);
}
Tensor moved(const Tensor& x, const Tensor& other, bool non_blocking, bool copy) {
  return moved(x, other.device(), other.dtype(), non_blocking, copy);
}

PyObject* wrap(Tensor x) {
  if (!x.defined()) return Py_NewRef(Py_None);
  nb::object o = nb::inst_alloc(nb::handle((PyObject*)tensor_type));
  new (&handle_of(o.ptr())) Tensor(std::move(x));
  nb::inst_mark_ready(o);
  return o.release().ptr();
}
PyObject* wrap(bool x) { return PyBool_FromLong(x); }
PyObject* wrap(double x) { return PyFloat_FromDouble(x); }
PyObject* wrap(const std::vector<Tensor>& list) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(list.size()));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SetItem(tuple, Py_ssize_t(i), wrap(list[i]));
  return tuple;
}
PyObject* wrap(const std::vector<int64_t>& list) { return nb::cast(list).release().ptr(); }
PyObject* wrap(PackedSequence x) { return nb::cast(std::move(x)).release().ptr(); }
PyObject* wrap(const Shape& x) {
  PyObject* tuple = PyTuple_New(x.size());
  for (int i = 0; i < x.size(); ++i) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(x[i]));
  return tuple;
}
PyObject* wrap(const Scalar& x) {
  switch (x.kind()) {
    case volta::Kind::boolean: return PyBool_FromLong(x.as<bool>());
    case volta::Kind::unsigned_int: return PyLong_FromUnsignedLongLong(x.as<uint64_t>());
    case volta::Kind::signed_int: return PyLong_FromLongLong(x.as<int64_t>());
    default: return PyFloat_FromDouble(x.as<double>());
  }
}

namespace {

bool is_long(const Operand& o) { return o.tensor && work_of(*o.tensor) >= long_work; }

std::optional<Operand> operand_in(PyObject* o) {
  if (const Tensor* x = tensor_in(o)) return Operand(*x);
  if (const auto scalar = maybe_scalar(o)) return Operand(*scalar);
  return {};
}

// An array of NumPy beside a tensor is one too; its memory is used as it is.
std::optional<Operand> array_operand(PyObject* o, Tensor& kept) {
  if (const auto known = operand_in(o)) return known;
  if (!has_buffer(o) || PyBytes_Check(o) || PyByteArray_Check(o)) return {};
  kept = from_buffer(o);
  return Operand(kept);
}

using Binary = Tensor (*)(const Operand&, const Operand&);
PyObject* with_arrays(Binary f, PyObject* a, PyObject* b) {
  Tensor first, second;
  const auto left = array_operand(a, first), right = array_operand(b, second);
  if (!left || !right) return Py_NewRef(Py_NotImplemented);
  return wrap(f(*left, *right));
}
template <Binary f> PyObject* binary(PyObject* a, PyObject* b) noexcept {
  try {
    const auto left = operand_in(a), right = operand_in(b);
    if (!left || !right) return with_arrays(f, a, b);
    Tensor y = (Unlocked(is_long(*left) || is_long(*right)), f(*left, *right));
    return wrap(std::move(y));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
using InPlace = Tensor& (Tensor::*)(const Operand&)&;
template <InPlace f> PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  try {
    Tensor kept;
    const auto right = array_operand(b, kept);
    if (!right) return Py_NewRef(Py_NotImplemented);
    Tensor& x = handle_of(a);
    (Unlocked(is_long(x) || is_long(*right)), (x.*f)(*right));
    return Py_NewRef(a);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
template <Tensor (*f)(const Tensor&)> PyObject* unary(PyObject* a) noexcept {
  try {
    const Tensor& x = handle_of(a);
    Tensor y = (Unlocked(is_long(x)), f(x));
    return wrap(std::move(y));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

Tensor matrix_product(const Operand& a, const Operand& b) {
  if (!a.tensor || !b.tensor) raise(PyExc_TypeError, "matmul(): both sides of @ must be Tensors");
  return matmul(*a.tensor, *b.tensor);
}
Tensor power(const Operand& a, const Operand& b) { return pow(a, b); }

// a // b: where one of them is infinite, a / b as the array API wants it, not NaN or -1 as Python and PyTorch say.
Tensor floor_quotient(const Operand& a, const Operand& b) {
  const Tensor y = floor_divide(a, b);
  if (!is_floating(y.dtype())) return y;
  Tensor left, right;
  const auto infinite = [](const Operand& x, Tensor& kept) {
    if (!x.tensor) return Operand(std::isinf(x.scalar.as<double>()));
    return Operand(kept = isinf(*x.tensor));
  };
  return where(logical_or(infinite(a, left), infinite(b, right)), div(a, b).detach(), y);
}
void floor_divide_by(Tensor& x, const Operand& b) {
  const Unlocked unlocked(is_long(x) || is_long(b));
  const Tensor y = is_floating(x.dtype()) ? floor_quotient(x, b) : Tensor();
  x.floor_divide_(b);
  if (y.defined()) x.copy_(y);
}
PyObject* floor_divide_in_place(PyObject* a, PyObject* b) noexcept {
  try {
    Tensor kept;
    const auto right = array_operand(b, kept);
    if (!right) return Py_NewRef(Py_NotImplemented);
    floor_divide_by(handle_of(a), *right);
    return Py_NewRef(a);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* ternary_power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? binary<power>(a, b) : Py_NewRef(Py_NotImplemented);
}
PyObject* ternary_power_in_place(PyObject* a, PyObject* b, PyObject*) noexcept { return in_place<&Tensor::pow_>(a, b); }

PyObject* compare(PyObject* a, PyObject* b, int how) noexcept {
  switch (how) {
    case Py_EQ: return binary<volta::eq>(a, b);
    case Py_NE: return binary<volta::ne>(a, b);
    case Py_LT: return binary<volta::lt>(a, b);
    case Py_LE: return binary<volta::le>(a, b);
    case Py_GT: return binary<volta::gt>(a, b);
    default: return binary<volta::ge>(a, b);
  }
}

Scalar item(const Tensor& x) {
  const Unlocked unlocked(!x.device().is_cpu());
  return x.item();
}
// Scalar of the one element, or Python's error.
template <class Make> PyObject* converted(PyObject* self, const Make& make) noexcept {
  try {
    return make(handle_of(self));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
int as_truth(PyObject* self) noexcept {
  PyObject* truth = converted(self, [](const Tensor& x) {
    if (x.numel() != 1)
      throw Error(Error::Kind::argument, "bool",
                  "the truth of " + std::to_string(x.numel()) + " elements is ambiguous");
    return wrap(item(x).as<bool>());
  });
  if (!truth) return -1;
  Py_DECREF(truth);
  return truth == Py_True;
}
PyObject* as_int(PyObject* self) noexcept {
  return converted(self, [](const Tensor& x) -> PyObject* {
    const nb::object number = nb::steal(wrap(item(x)));
    return PyNumber_Long(number.ptr());
  });
}
PyObject* as_float(PyObject* self) noexcept {
  return converted(self, [](const Tensor& x) { return wrap(item(x).as<double>()); });
}
PyObject* as_index(PyObject* self) noexcept {
  return converted(self, [](const Tensor& x) -> PyObject* {
    if (is_floating(x.dtype()) || x.dim() > 0 || x.dtype() == boolean)
      raise(PyExc_TypeError, "only a 0-d tensor of integers is an index");
    return wrap(item(x));
  });
}

Py_ssize_t length(PyObject* self) noexcept {
  const Tensor& x = handle_of(self);
  if (!x.defined() || x.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "a 0-d tensor has no len()");
    return -1;
  }
  return Py_ssize_t(x.size(0));
}
PyObject* iterate(PyObject* self) noexcept {
  return converted(self, [](const Tensor& x) -> PyObject* {
    if (x.dim() == 0) raise(PyExc_TypeError, "a 0-d tensor has nothing to iterate over");
    const nb::object rows = nb::steal(wrap(unbind(x)));
    return PyObject_GetIter(rows.ptr());
  });
}

// C++'s text without its tail, "  f32 [2, 3]", as NumPy would write it.
std::string text_of(const Tensor& x) {
  std::string text = x.str();
  const bool grad = text.ends_with(" requires_grad");
  text.erase(text.rfind("  "));
  std::string out = "tensor(";
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 4, "true") == 0) out += "True", i += 3;
    else if (text.compare(i, 5, "false") == 0) out += "False", i += 4;
    else out += text[i];
    if (text[i] == '\n' && text[i + 1] != '\n') out += "       ";  // not between matrices
  }
  const bool plain = x.dtype() == default_dtype() || x.dtype() == i64 || x.dtype() == boolean;
  if (x.numel() == 0 && x.dim() != 1) out += ", size=" + x.shape().str();
  if (!plain || (x.numel() == 0 && x.dtype() != default_dtype()))
    out += ", dtype=" + std::string(python_name(x.dtype()));
  if (!x.device().is_cpu()) out += ", device='" + x.device().str() + "'";
  return out + (grad ? ", requires_grad=True)" : ")");
}
PyObject* represent(PyObject* self) noexcept {
  return converted(self, [](const Tensor& x) {
    const std::string text = (Unlocked(!x.device().is_cpu()), text_of(x));
    return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
  });
}
Py_hash_t hash_of(PyObject* self) noexcept { return Py_hash_t(reinterpret_cast<uintptr_t>(self) >> 4); }

template <class F> void* slot(F* f) { return reinterpret_cast<void*>(f); }

const PyType_Slot slots[] = {
    {Py_nb_add, slot(binary<volta::add>)},
    {Py_nb_subtract, slot(binary<volta::sub>)},
    {Py_nb_multiply, slot(binary<volta::mul>)},
    {Py_nb_true_divide, slot(binary<volta::div>)},
    {Py_nb_floor_divide, slot(binary<floor_quotient>)},
    {Py_nb_remainder, slot(binary<volta::remainder>)},
    {Py_nb_power, slot(ternary_power)},
    {Py_nb_matrix_multiply, slot(binary<matrix_product>)},
    {Py_nb_and, slot(binary<volta::bitwise_and>)},
    {Py_nb_or, slot(binary<volta::bitwise_or>)},
    {Py_nb_xor, slot(binary<volta::bitwise_xor>)},
    {Py_nb_lshift, slot(binary<volta::bitwise_left_shift>)},
    {Py_nb_rshift, slot(binary<volta::bitwise_right_shift>)},
    {Py_nb_inplace_add, slot(in_place<&Tensor::add_>)},
    {Py_nb_inplace_subtract, slot(in_place<&Tensor::sub_>)},
    {Py_nb_inplace_multiply, slot(in_place<&Tensor::mul_>)},
    {Py_nb_inplace_true_divide, slot(in_place<&Tensor::div_>)},
    {Py_nb_inplace_floor_divide, slot(floor_divide_in_place)},
    {Py_nb_inplace_remainder, slot(in_place<&Tensor::remainder_>)},
    {Py_nb_inplace_power, slot(ternary_power_in_place)},
    {Py_nb_inplace_and, slot(in_place<&Tensor::bitwise_and_>)},
    {Py_nb_inplace_or, slot(in_place<&Tensor::bitwise_or_>)},
    {Py_nb_inplace_xor, slot(in_place<&Tensor::bitwise_xor_>)},
    {Py_nb_inplace_lshift, slot(in_place<&Tensor::bitwise_left_shift_>)},
    {Py_nb_inplace_rshift, slot(in_place<&Tensor::bitwise_right_shift_>)},
    {Py_nb_negative, slot(unary<volta::neg>)},
    {Py_nb_positive, slot(unary<volta::positive>)},
    {Py_nb_absolute, slot(unary<volta::abs>)},
    {Py_nb_invert, slot(unary<volta::bitwise_not>)},
    {Py_nb_bool, slot(as_truth)},
    {Py_nb_int, slot(as_int)},
    {Py_nb_float, slot(as_float)},
    {Py_nb_index, slot(as_index)},
    {Py_mp_length, slot(length)},
    {Py_mp_subscript, slot(get_item)},
    {Py_mp_ass_subscript, slot(set_item)},
    {Py_tp_iter, slot(iterate)},
    {Py_tp_repr, slot(represent)},
    {Py_tp_richcompare, slot(compare)},
    {Py_tp_hash, slot(hash_of)},
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
    {0, nullptr},
};

// An int that can also be called: x.size is the array API's number of elements, x.size() and x.size(0) PyTorch's.
nb::object size_of(const Tensor& x) {
  static PyObject* type = nb::module_::import_("volta._size").attr("Size").inc_ref().ptr();
  const nb::object shape = nb::steal(wrap(x.shape()));
  return nb::borrow(type)(x.numel(), shape);
}

void define_gradients(nb::class_<Tensor>& c) {
  c.def_prop_rw("requires_grad", &Tensor::requires_grad, [](Tensor& x, bool on) { x.requires_grad_(on); })
      .def_prop_ro("is_leaf", &Tensor::is_leaf)
      .def_prop_rw(
          "grad", [](const Tensor& x) { return std::optional<Tensor>(x.grad()); },
          [](const Tensor& x, const Tensor* grad) { grad ? x.set_grad(*grad) : x.zero_grad(); },
          nb::for_setter(nb::arg("grad").none()))
      .def("retain_grad", &Tensor::retain_grad)
      .def_prop_ro("retains_grad", &Tensor::retains_grad)
      .def("detach", &Tensor::detach)
      .def_prop_ro("data", &Tensor::detach)
      .def(
          "backward",
          [](const Tensor& x, const std::optional<Tensor>& gradient, bool retain_graph, bool create_graph) {
            const Unlocked unlocked;
            const BackwardOptions options{retain_graph || create_graph, create_graph};
            if (gradient) x.backward(*gradient, options);
            else x.backward(options);
          },
          nb::arg("gradient").none() = nb::none(), nb::arg("retain_graph") = false, nb::arg("create_graph") = false)
      .def("_register_hook",
           [](const Tensor& x, const nb::callable& f) {
             return x.register_hook([call = Callback(f)](const Tensor& g) -> std::optional<Tensor> {
               const nb::gil_scoped_acquire locked;
               const nb::object given = call(nb::cast(g));
               if (given.is_none()) return {};
               if (const Tensor* y = tensor_in(given.ptr())) return *y;
               raise(PyExc_TypeError, "a hook returns a Tensor or None, not " + type_name_of(given.ptr()));
             });
           })
      .def("_remove_hook", &Tensor::remove_hook);
}

}  // namespace

void define_tensor(nb::module_& m) {
  nb::class_<Tensor> c(m, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(), nb::pooled(1024),
                       "Typed, shaped memory, possibly shared, and the graph that made it.");
  tensor_type = (PyTypeObject*)c.ptr();
  const nb::object any = nb::inst_alloc(c);
  tensor_offset = reinterpret_cast<char*>(nb::inst_ptr<Tensor>(any)) - reinterpret_cast<char*>(any.ptr());
  // The memory of a tensor that is gone is used again: one that a class of Python makes and does not initialise is undefined.
  const nb::object make = nb::cpp_function([](const nb::type_object& type, const nb::args&, const nb::kwargs&) {
    if (!PyType_IsSubtype((PyTypeObject*)type.ptr(), tensor_type))
      raise(PyExc_TypeError, "Tensor.__new__(): a class of Tensors");
    nb::object o = nb::inst_alloc(type);
    new (&handle_of(o.ptr())) Tensor();
    return o;
  });
  nb::setattr(c, "__new__",
              nb::steal(PyObject_CallFunctionObjArgs(nb::module_::import_("builtins").attr("staticmethod").ptr(),
                                                     make.ptr(), nullptr)));
  c.def(nb::init<const Tensor&>(), nb::arg("other"))
      .def_prop_ro("shape", [](const Tensor& x) { return nb::steal(wrap(x.shape())); })
      .def_prop_ro("dtype", [](const Tensor& x) { return nb::steal(wrap(x.dtype())); })
      .def_prop_ro("device", [](const Tensor& x) { return x.device(); })
      .def_prop_ro("ndim", &Tensor::dim)
      .def_prop_ro("size", size_of)
      .def_prop_ro("nbytes", &Tensor::nbytes)
      .def_prop_ro("itemsize", [](const Tensor& x) { return traits(x.dtype()).size; })
      .def_prop_ro("is_cuda", [](const Tensor& x) { return x.device().is_cuda(); })
      .def_prop_ro("_version", &Tensor::version)
      .def_prop_ro("T",
                   [](const Tensor& x) {
                     if (x.dim() != 2)
                       throw Error(
                           Error::Kind::shape, "T",
                           "a matrix is wanted, not shape " + x.shape().str() + "; mT swaps the last two axes of more");
                     return x.t();
                   })
      .def_prop_ro("mT", [](const Tensor& x) { return x.mT(); })
      .def("dim", &Tensor::dim)
      .def("numel", &Tensor::numel)
      .def("nelement", &Tensor::numel)
      .def("element_size", [](const Tensor& x) { return traits(x.dtype()).size; })
      .def("stride", [](const Tensor& x) { return nb::steal(wrap(x.strides())); })
      .def("stride", &Tensor::stride, nb::arg("dim"))
      .def("storage_offset", &Tensor::storage_offset)
      .def("data_ptr", [](const Tensor& x) { return reinterpret_cast<uintptr_t>(x.raw_data()); })
      .def("is_contiguous", &Tensor::is_contiguous)
      .def("is_floating_point", [](const Tensor& x) { return is_floating(x.dtype()); })
      .def("shares_storage", &Tensor::shares_storage, nb::arg("other"))
      .def("item", [](const Tensor& x) { return nb::steal(wrap(item(x))); })
      .def("tolist", [](const Tensor& x) { return nb::steal(to_list(x)); })
      .def("__complex__", [](const Tensor& x) {
        const double real = item(x).as<double>();
        return nb::steal(PyComplex_FromDoubles(real, std::isnan(real) ? real : 0));
      });
  define_gradients(c);
}

}  // namespace volta::python
