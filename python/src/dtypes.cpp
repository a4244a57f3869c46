// dtypes and devices as Python has them: volta.float32, volta.device("cuda:0"); finfo, iinfo, result_type.
#include <array>

#include <nanobind/stl/string.h>

#include <volta/dtype_info.h>

#include "objects.h"

namespace volta::python {
namespace {

constexpr std::array<std::string_view, dtype_count> names = {"float16", "bfloat16", "float32", "float64", "int8",
                                                             "int16",   "int32",    "int64",   "uint8",   "uint16",
                                                             "uint32",  "uint64",   "bool"};
PyObject* dtypes[dtype_count];
PyTypeObject* dtype_type;
PyTypeObject* device_type;

struct PythonDType {
  DType value;
};

DType meet(const nb::args& operands) {
  std::optional<DType> result;
  for (const nb::handle o : operands) {  // numbers are weak: they count after all tensors and dtypes
    const Tensor* x = tensor_in(o.ptr());
    const DType* d = x ? nullptr : dtype_in(o.ptr());
    if (!x && (!d || PyType_Check(o.ptr()))) continue;
    const DType dtype = x ? x->dtype() : *d;
    result = result ? promote_types(*result, dtype) : dtype;
  }
  for (const nb::handle o : operands) {
    if (tensor_in(o.ptr()) || nb::isinstance<PythonDType>(o)) continue;
    const Scalar number = scalar_from(o.ptr());
    result = result ? result_type(zeros({}, {.dtype = *result}), number) : result_type(number, number);
  }
  if (!result) raise(PyExc_ValueError, "result_type() needs at least one operand");
  return *result;
}

nb::object as_object(PyObject* o) { return nb::steal(o); }

}  // namespace

std::string_view python_name(DType dtype) { return names[size_t(dtype)]; }
PyObject* wrap(DType dtype) { return Py_NewRef(dtypes[int(dtype)]); }
PyObject* wrap(const Device& device) { return nb::cast(device).release().ptr(); }

const DType* dtype_in(PyObject* o) {
  static constexpr DType truth = boolean, whole = i64, real = f64;
  if (Py_TYPE(o) == dtype_type) return &nb::inst_ptr<PythonDType>(o)->value;
  if (o == (PyObject*)&PyBool_Type) return &truth;
  if (o == (PyObject*)&PyLong_Type) return &whole;
  if (o == (PyObject*)&PyFloat_Type) return &real;  // as for NumPy and PyTorch
  return nullptr;
}

std::optional<Device> device_in(PyObject* o) {
  if (Py_TYPE(o) == device_type) return *nb::inst_ptr<Device>(o);
  if (!PyUnicode_Check(o)) return {};
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) throw ErrorIsSet();
  return Device(std::string_view(text, size_t(size)));
}

void define_dtypes(nb::module_& m) {
  nb::class_<PythonDType> dtype(m, "dtype", "The type of a tensor's elements.");
  dtype_type = (PyTypeObject*)dtype.ptr();
  dtype.def("__repr__", [](const PythonDType& d) { return "volta." + std::string(python_name(d.value)); })
      .def("__hash__", [](const PythonDType& d) { return size_t(d.value) + 0x766f6c74; })
      .def(
          "__eq__",
          [](const PythonDType& d, nb::handle other) {
            return Py_TYPE(other.ptr()) == dtype_type && nb::inst_ptr<PythonDType>(other)->value == d.value;
          },
          nb::arg("other").none())
      .def("__reduce__", [](const PythonDType& d) { return std::string(python_name(d.value)); })
      .def_prop_ro("__module__", [](const PythonDType&) { return "volta"; })
      .def_prop_ro("name", [](const PythonDType& d) { return std::string(python_name(d.value)); })
      .def_prop_ro("itemsize", [](const PythonDType& d) { return traits(d.value).size; })
      .def_prop_ro("is_floating_point", [](const PythonDType& d) { return is_floating(d.value); })
      .def_prop_ro("is_signed", [](const PythonDType& d) { return traits(d.value).kind >= volta::Kind::signed_int; });
  for (int i = 0; i < dtype_count; ++i) {
    dtypes[i] = nb::cast(PythonDType{DType(i)}).release().ptr();
    m.attr(std::string(names[size_t(i)]).c_str()) = nb::handle(dtypes[i]);
  }

  nb::class_<Device> device(m, "device", "Where a tensor lives: device('cpu'), device('cuda:1').");
  device_type = (PyTypeObject*)device.ptr();
  device.def("__init__", [](Device* self, const std::string& name) { new (self) Device(name); })
      .def("__init__", [](Device* self, const Device& other) { new (self) Device(other); })
      .def("__init__", [](Device* self, const std::string& type,
                          int64_t index) { new (self) Device(type + ":" + std::to_string(index)); })
      .def("__repr__", [](const Device& d) { return "device('" + d.str() + "')"; })
      .def("__str__", [](const Device& d) { return d.str(); })
      .def("__hash__", [](const Device& d) { return size_t(d.type) * 256 + d.index; })
      .def(
          "__eq__",
          [](const Device& d, nb::handle other) {
            if (Py_TYPE(other.ptr()) == device_type) return *nb::inst_ptr<Device>(other) == d;
            return bool(PyUnicode_Check(other.ptr())) && nb::cast<std::string>(other) == d.str();
          },
          nb::arg("other").none())
      .def("__reduce__",
           [](const Device& d) { return nb::make_tuple(nb::handle((PyObject*)device_type), nb::make_tuple(d.str())); })
      .def_prop_ro("type", [](const Device& d) { return d.str().substr(0, d.str().find(':')); })
      .def_prop_ro("index", [](const Device& d) { return d.is_cpu() ? nb::object(nb::none()) : nb::int_(d.index); });

  nb::class_<FloatInfo>(m, "FloatInfo")
      .def_ro("bits", &FloatInfo::bits)
      .def_ro("eps", &FloatInfo::eps)
      .def_ro("max", &FloatInfo::max)
      .def_ro("min", &FloatInfo::min)
      .def_ro("tiny", &FloatInfo::tiny)
      .def_ro("smallest_normal", &FloatInfo::smallest_normal)
      .def_ro("smallest_subnormal", &FloatInfo::smallest_subnormal)
      .def_ro("resolution", &FloatInfo::resolution)
      .def_prop_ro("dtype", [](const FloatInfo& i) { return as_object(wrap(i.dtype)); });
  nb::class_<IntegerInfo>(m, "IntegerInfo")
      .def_ro("bits", &IntegerInfo::bits)
      .def_ro("max", &IntegerInfo::max)
      .def_ro("min", &IntegerInfo::min)
      .def_prop_ro("dtype", [](const IntegerInfo& i) { return as_object(wrap(i.dtype)); });
  const auto of = [](nb::handle o) {
    if (const Tensor* x = tensor_in(o.ptr())) return x->dtype();
    const DType* d = dtype_in(o.ptr());
    if (!d) raise(PyExc_TypeError, "expected a dtype or a Tensor");
    return *d;
  };
  m.def(
      "finfo", [of](nb::handle o) { return finfo(of(o)); }, nb::arg("type"));
  m.def(
      "iinfo", [of](nb::handle o) { return iinfo(of(o)); }, nb::arg("type"));
  m.def(
      "can_cast", [of](nb::handle from, nb::handle to) { return can_cast(of(from), of(to)); }, nb::arg("from_"),
      nb::arg("to"));
  m.def("promote_types", [of](nb::handle a, nb::handle b) { return as_object(wrap(promote_types(of(a), of(b)))); });
  m.def("result_type", [](const nb::args& operands) { return as_object(wrap(meet(operands))); });
  m.def("_isdtype", [of](nb::handle d, const std::string& kind) { return isdtype(of(d), kind); });
  m.def("get_default_dtype", [] { return as_object(wrap(default_dtype())); });
  m.def(
      "set_default_dtype", [of](nb::handle d) { set_default_dtype(of(d)); }, nb::arg("d"));
}

}  // namespace volta::python
