// Binding of Python's arguments to the parameters of ops, and their conversion.
#include "arguments.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "callback.h"
#include "objects.h"

namespace volta::python {

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw ErrorIsSet();
}

std::string type_name_of(PyObject* value) { return nb::inst_name(value).c_str(); }

namespace {
// Empty unless it is a number or an array of NumPy.
std::string numpy_type_of(PyObject* value) {
  const nb::handle type = nb::handle(value).type();
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module) || nb::cast<nb::str>(module).c_str() != std::string_view("numpy")) return {};
  return nb::cast<nb::str>(type.attr("__name__")).c_str();
}
}  // namespace

bool is_integer(PyObject* value) {
  if (PyLong_Check(value)) return true;
  if (!PyIndex_Check(value) || tensor_in(value)) return false;
  // An array has __index__ too, and only a number of NumPy has a buffer without being one.
  if (!PyObject_CheckBuffer(value)) return true;
  const std::string type = numpy_type_of(value);
  return type.find("int") <= 1 || type.find("long") <= 1;
}

bool is_number(PyObject* value) {
  if (PyFloat_Check(value) || PyLong_Check(value)) return true;
  if (tensor_in(value)) return false;
  if (!PyIndex_Check(value) && !PyType_GetSlot(Py_TYPE(value), Py_nb_float)) return false;
  if (!PyObject_HasAttrString(value, "shape")) return true;
  const bool list = PyObject_Length(value) >= 0;  // an array: not a number, unless it is 0-d
  PyErr_Clear();
  return !list;
}

namespace {

Scalar scalar_of_integer(PyObject* value) {
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (n == -1 && !overflow && PyErr_Occurred()) throw ErrorIsSet();
  if (!overflow) return Scalar(int64_t(n));
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : ~0ull;
  if (overflow < 0 || (u == ~0ull && PyErr_Occurred())) {
    PyErr_Clear();
    raise(PyExc_OverflowError, "an int beyond 64 bits is no number of a tensor");
  }
  return Scalar(uint64_t(u));
}

}  // namespace

std::optional<Scalar> maybe_scalar(PyObject* value) {
  if (PyFloat_Check(value)) return Scalar(PyFloat_AsDouble(value));
  if (PyBool_Check(value)) return Scalar(value == Py_True);
  if (PyLong_Check(value)) return scalar_of_integer(value);
  if (!is_number(value)) return {};
  // NumPy's scalars: their truths come as bool, the others by what they convert to.
  if (PyIndex_Check(value)) {
    const nb::object whole = nb::steal(PyNumber_Index(value));
    if (whole.is_valid()) return scalar_of_integer(whole.ptr());
    PyErr_Clear();  // a 0-d array of floats
  }
  const std::string type = numpy_type_of(value);
  if (type == "bool" || type == "bool_") return Scalar(PyObject_IsTrue(value) == 1);
  const double d = PyFloat_AsDouble(value);
  if (d == -1 && PyErr_Occurred()) throw ErrorIsSet();
  return Scalar(d);
}

Scalar scalar_from(PyObject* value) {
  if (const auto scalar = maybe_scalar(value)) return *scalar;
  raise(PyExc_TypeError, "expected a number, not " + type_name_of(value));
}

namespace {

bool is_list(PyObject* value) { return PyList_Check(value) || PyTuple_Check(value); }
Py_ssize_t length_of(PyObject* list) {
  const Py_ssize_t n = PySequence_Size(list);
  if (n < 0) throw ErrorIsSet();  // a class of one's own that fails to tell
  return n;
}

bool all_in_list(PyObject* list, bool (*holds)(PyObject*)) {
  const Py_ssize_t n = PySequence_Size(list);
  if (n < 0) return PyErr_Clear(), false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(list, i));
    if (!item.is_valid() || !holds(item.ptr())) return PyErr_Clear(), false;
  }
  return true;
}

int64_t integer_from(PyObject* value) {
  if (!PyLong_Check(value)) {
    const nb::object whole = nb::steal(PyNumber_Index(value));
    if (!whole.is_valid()) throw ErrorIsSet();
    return integer_from(whole.ptr());
  }
  const int64_t n = PyLong_AsLongLong(value);
  if (n == -1 && PyErr_Occurred()) throw ErrorIsSet();
  return n;
}

template <class Add> void each_integer(Arguments& a, int i, const Add& add) {
  PyObject* value = a[i];
  if (is_integer(value)) return add(integer_from(value));
  if (!is_list(value)) a.refuse(i, "an int or a list of ints");
  for (Py_ssize_t k = 0, n = length_of(value); k < n; ++k) {
    const nb::object item = nb::steal(PySequence_GetItem(value, k));  // that of an item may change the list
    if (!item.is_valid()) throw ErrorIsSet();
    if (!is_integer(item.ptr())) a.refuse(i, "a list of ints");
    add(integer_from(item.ptr()));
  }
}

Shape shape_from(Arguments& a, int i) {
  Shape shape;
  each_integer(a, i, [&](int64_t n) { shape.push_back(n); });
  return shape;
}

std::vector<int64_t> integers_from(Arguments& a, int i) {
  if (const Tensor* x = tensor_in(a[i])) return x->to_vector<int64_t>();
  std::vector<int64_t> list;
  each_integer(a, i, [&](int64_t n) { list.push_back(n); });
  return list;
}

}  // namespace

namespace {
std::atomic<int> unlocked_threads = 0;
std::atomic<bool> interpreter_ends = false;
std::thread::id ending_thread;
}  // namespace

Unlocked::Unlocked(bool really) : state_(nullptr) {
  if (!really) return;
  ++unlocked_threads;
  state_ = PyEval_SaveThread();
}
Unlocked::Unlocked(const Arguments& a) : Unlocked(a.work() >= long_work) {}
Unlocked::~Unlocked() {
  if (!state_) return;
  if (interpreter_ends && std::this_thread::get_id() != ending_thread) {
    --unlocked_threads;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  PyEval_RestoreThread(state_);
  --unlocked_threads;
}

void stop_unlocked_threads() {
  ending_thread = std::this_thread::get_id();
  PyThreadState* state = PyEval_SaveThread();  // threads that are past the question come through
  interpreter_ends = true;
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (unlocked_threads > 0 && std::chrono::steady_clock::now() < enough)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

void Arguments::refuse(int i, const char* wanted) const {
  raise(PyExc_TypeError, std::string(op_) + "(): argument '" + overload_.parameters[i].name + "' must be " + wanted +
                             ", not " + type_name_of(values_[i]));
}

const Tensor& Arguments::tensor(int i) {
  const Tensor* x = tensor_in(values_[i]);
  if (!x) refuse(i, "a Tensor");
  work_ += work_of(*x);
  return *x;
}
const Tensor& Arguments::maybe_tensor(int i) {
  static const Tensor none;
  return values_[i] && values_[i] != Py_None ? tensor(i) : none;
}
std::string Arguments::text(int i) {
  Py_ssize_t size = 0;
  if (!PyUnicode_Check(values_[i])) refuse(i, "a str");
  const char* text = PyUnicode_AsUTF8AndSize(values_[i], &size);
  if (!text) throw ErrorIsSet();
  return std::string(text, size_t(size));
}

template <> Tensor Arguments::get<Tensor>(int i) { return maybe_tensor(i); }
template <> Operand Arguments::get<Operand>(int i) {
  if (tensor_in(values_[i])) return tensor(i);
  if (const auto scalar = maybe_scalar(values_[i])) return *scalar;
  refuse(i, "a Tensor or a number");
}
template <> Scalar Arguments::get<Scalar>(int i) {
  if (const auto scalar = maybe_scalar(values_[i])) return *scalar;
  if (const Tensor* x = tensor_in(values_[i])) return x->item();
  refuse(i, "a number");
}
template <> int64_t Arguments::get<int64_t>(int i) {
  if (is_integer(values_[i]) || (tensor_in(values_[i]) && PyIndex_Check(values_[i]))) return integer_from(values_[i]);
  refuse(i, "an int");
}
template <> Int Arguments::get<Int>(int i) { return get<int64_t>(i); }
template <> int Arguments::get<int>(int i) {
  const int64_t n = get<int64_t>(i);
  if (n != int(n)) raise(PyExc_OverflowError, std::string(op_) + "(): " + std::to_string(n) + " is too large");
  return int(n);
}
template <> double Arguments::get<double>(int i) { return get<Scalar>(i).as<double>(); }
template <> bool Arguments::get<bool>(int i) {
  const int truth = tensor_in(values_[i]) || is_number(values_[i]) ? PyObject_IsTrue(values_[i]) : -2;
  if (truth == -2) refuse(i, "a bool");
  if (truth < 0) throw ErrorIsSet();
  return truth == 1;
}
template <> std::optional<int64_t> Arguments::get<std::optional<int64_t>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<int64_t>(i);
}
template <> std::optional<Int> Arguments::get<std::optional<Int>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<Int>(i);
}
template <> std::optional<double> Arguments::get<std::optional<double>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<double>(i);
}
template <> std::optional<bool> Arguments::get<std::optional<bool>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<bool>(i);
}
template <> Axes Arguments::get<Axes>(int i) {
  if (is_integer(values_[i])) return Axes(integer_from(values_[i]));
  return shape_from(*this, i);
}
template <> Shape Arguments::get<Shape>(int i) { return shape_from(*this, i); }
template <> Ints Arguments::get<Ints>(int i) { return integers_from(*this, i); }
template <> std::vector<int64_t> Arguments::get<std::vector<int64_t>>(int i) { return integers_from(*this, i); }
template <> PerAxis Arguments::get<PerAxis>(int i) { return shape_from(*this, i); }
template <> ConvPadding Arguments::get<ConvPadding>(int i) {
  if (PyUnicode_Check(values_[i])) return ConvPadding(text(i));
  return ConvPadding(PerAxis(shape_from(*this, i)));
}
template <> Numbers Arguments::get<Numbers>(int i) {
  if (const auto scalar = maybe_scalar(values_[i])) return scalar->as<double>();
  if (!is_list(values_[i])) refuse(i, "a number or a list of numbers");
  std::vector<double> list;
  for (Py_ssize_t k = 0, n = length_of(values_[i]); k < n; ++k) {
    const nb::object item = nb::steal(PySequence_GetItem(values_[i], k));
    if (!item.is_valid()) throw ErrorIsSet();
    list.push_back(scalar_from(item.ptr()).as<double>());
  }
  return Numbers(std::move(list));
}
template <> std::pair<double, double> Arguments::get<std::pair<double, double>>(int i) {
  const Numbers list = get<Numbers>(i);
  if (list.size() != 2) refuse(i, "a pair of numbers");
  return {list[0], list[1]};
}
template <> std::optional<std::pair<double, double>> Arguments::get<std::optional<std::pair<double, double>>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<std::pair<double, double>>(i);
}
template <> std::vector<Tensor> Arguments::get<std::vector<Tensor>>(int i) {
  if (tensor_in(values_[i])) return unbind(tensor(i));
  if (!is_list(values_[i])) refuse(i, "a list of Tensors");
  std::vector<Tensor> list;
  for (Py_ssize_t k = 0, n = length_of(values_[i]); k < n; ++k) {
    const nb::object item = nb::steal(PySequence_GetItem(values_[i], k));
    if (!item.is_valid()) throw ErrorIsSet();
    const Tensor* x = item.is_none() ? nullptr : tensor_in(item.ptr());
    if (!x && !item.is_none()) refuse(i, "a list of Tensors");
    list.push_back(x ? *x : Tensor());
    work_ += x ? work_of(*x) : 0;
  }
  return list;
}
template <> std::string Arguments::get<std::string>(int i) { return text(i); }
template <> DType Arguments::get<DType>(int i) {
  if (const DType* dtype = dtype_in(values_[i])) return *dtype;
  refuse(i, "a dtype");
}
template <> std::optional<DType> Arguments::get<std::optional<DType>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<DType>(i);
}
template <> Device Arguments::get<Device>(int i) {
  if (const auto device = device_in(values_[i])) return *device;
  refuse(i, "a device");
}
template <> std::optional<Device> Arguments::get<std::optional<Device>>(int i) {
  if (!values_[i] || values_[i] == Py_None) return {};
  return get<Device>(i);
}
template <> Generator* Arguments::get<Generator*>(int i) {
  if (!values_[i] || values_[i] == Py_None) return nullptr;
  Generator* generator = nullptr;
  if (!nb::try_cast<Generator*>(nb::handle(values_[i]), generator)) refuse(i, "a Generator");
  return generator;
}
template <> PackedSequence Arguments::get<PackedSequence>(int i) {
  PackedSequence* packed = nullptr;
  if (!nb::try_cast<PackedSequence*>(nb::handle(values_[i]), packed) || !packed) refuse(i, "a PackedSequence");
  return *packed;
}
using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
template <> Distance Arguments::get<Distance>(int i) {
  if (!PyCallable_Check(values_[i])) refuse(i, "callable");
  count(long_work);
  return [call = Callback(values_[i])](const Tensor& a, const Tensor& b) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<Tensor>(call.handle()(a, b));
  };
}

bool fits(Takes takes, PyObject* value) {
  switch (takes) {
    case Takes::tensor: return tensor_in(value);
    case Takes::operand: return tensor_in(value) || is_number(value);
    case Takes::integer: return is_integer(value) || (tensor_in(value) && tensor_in(value)->dim() == 0);
    case Takes::number: return is_number(value) || (tensor_in(value) && tensor_in(value)->dim() == 0);
    case Takes::truth: return PyBool_Check(value);
    case Takes::axes:
    case Takes::shape:
    case Takes::integers: return is_integer(value) || (is_list(value) && all_in_list(value, is_integer));
    case Takes::ints: return is_list(value) && all_in_list(value, is_integer);
    case Takes::tensors:
      return is_list(value) && all_in_list(value, [](PyObject* o) { return tensor_in(o) != nullptr; });
    case Takes::text: return PyUnicode_Check(value);
    case Takes::dtype: return dtype_in(value) != nullptr;
    case Takes::device: return device_in(value).has_value();
    case Takes::numbers: return is_number(value) || is_list(value);
    case Takes::padding: return PyUnicode_Check(value) || is_integer(value) || is_list(value);
    case Takes::callable: return PyCallable_Check(value);
    case Takes::nothing: return value == Py_None;
    case Takes::generator:
    case Takes::packed: return true;
  }
  return false;
}

namespace {

int find(const Overload& overload, PyObject* name) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);  // kept by the string: names are interned
  if (!text) throw ErrorIsSet();
  const auto named = [&](const char* wanted) {
    for (int i = 0; i < overload.count; ++i)
      if (std::strcmp(wanted, overload.parameters[i].name) == 0) return i;
    return -1;
  };
  if (const int i = named(text); i >= 0) return i;
  // NumPy's words, which PyTorch takes too.
  const std::string_view word = text;
  return word == "axis" ? named("dim") : word == "keepdims" ? named("keepdim") : -1;
}

// x.reshape(2, 3) as x.reshape((2, 3)), einsum(text, a, b) as einsum(text, [a, b]): what is given from `at` on as a
// tuple, unless other things are among it.
nb::object gathered(bool tensors, int at, PyObject* const* given, Py_ssize_t positional) {
  for (Py_ssize_t i = at; i < positional; ++i)
    if (tensors ? !tensor_in(given[i]) : !is_integer(given[i]) || PyBool_Check(given[i])) return {};
  const nb::object list = nb::steal(PyTuple_New(positional - at));
  for (Py_ssize_t i = at; i < positional; ++i) PyTuple_SetItem(list.ptr(), i - at, Py_NewRef(given[i]));
  return list;
}

bool bind_names(Arguments& a, const Overload& overload, PyObject* const* values, PyObject* names, std::string& why) {
  for (Py_ssize_t k = 0, n = PyTuple_Size(names); k < n; ++k) {
    PyObject* name = PyTuple_GetItem(names, k);
    const int i = find(overload, name);
    if (i < 0) why = std::string("has no argument '") + PyUnicode_AsUTF8AndSize(name, nullptr) + "'";
    else if (a[i]) why = std::string("got '") + overload.parameters[i].name + "' twice";
    if (i < 0 || a[i]) return false;
    a[i] = values[k];
  }
  return true;
}

// Whether the arguments fit the parameters; if not, why.
bool bind(Arguments& a, const Overload& overload, PyObject* const* given, Py_ssize_t positional, PyObject* names,
          nb::object& list, std::string& why) {
  int own = int(positional);
  if (overload.variadic >= 0 && own > overload.variadic) {
    const bool tensors = overload.parameters[overload.variadic].takes == Takes::tensors;
    if (tensors || own > overload.variadic + 1) list = gathered(tensors, overload.variadic, given, positional);
    if (list.is_valid()) own = overload.variadic;
  }
  if (own > overload.count) {
    why =
        "takes at most " + std::to_string(overload.count) + " arguments, " + std::to_string(positional) + " were given";
    return false;
  }
  for (int i = 0; i < own; ++i) a[i] = given[i];
  if (list.is_valid()) a[own] = list.ptr();
  if (names && !bind_names(a, overload, given + positional, names, why)) return false;
  for (int i = 0; i < overload.count; ++i) {
    const Parameter& p = overload.parameters[i];
    if (!p.required) {
      if (a[i] == Py_None) a[i] = nullptr;
    } else if (!a[i]) {
      why = std::string("misses the argument '") + p.name + "'";
      return false;
    }
  }
  return true;
}

[[noreturn]] void refuse_call(const Op& op, const std::string& why) {
  std::string message = std::string(op.name) + "() " + why + "; it is";
  for (int i = 0; i < op.count; ++i) message += (i ? " or " : " ") + std::string(op.name) + op.overloads[i].signature;
  raise(PyExc_TypeError, message);
}

}  // namespace

PyObject* call(const Op& op, PyObject* const* given, Py_ssize_t positional, PyObject* names) noexcept {
  try {
    std::string why;
    for (int k = 0; k < op.count; ++k) {
      const Overload& overload = op.overloads[k];
      Arguments a(op.name, overload);
      nb::object list;
      if (!bind(a, overload, given, positional, names, list, why)) continue;
      bool fitting = true;
      for (int i = 0; op.count > 1 && i < overload.count && fitting; ++i)
        fitting = !a[i] || fits(overload.parameters[i].takes, a[i]);
      if (fitting) return overload.call(a);
      why = "does not take these types";
    }
    refuse_call(op, why);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace volta::python
