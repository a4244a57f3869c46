// Data of Python as tensors and back: numbers and nested lists, and the buffer protocol both ways, without copies.
#include <volta/ops.h>

#include "core/impl.h"
#include "objects.h"

namespace volta::python {
namespace {

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o) || is_range(o); }

DType natural(volta::Kind kind, bool empty) {
  if (empty || kind == volta::Kind::floating) return default_dtype();
  return kind == volta::Kind::boolean ? boolean : i64;
}

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t size) {
  std::string_view f = format ? format : "B";
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || (f[0] == '<' && std::endian::native == std::endian::little) ||
                     (f[0] == '>' && std::endian::native == std::endian::big)))
    f.remove_prefix(1);
  if (f.size() != 1) return {};
  const auto sized = [&](DType a, DType b, DType c, DType d) -> std::optional<DType> {
    switch (size) {
      case 1: return a;
      case 2: return b;
      case 4: return c;
      case 8: return d;
      default: return {};
    }
  };
  switch (f[0]) {
    case '?': return boolean;
    case 'e': return f16;
    case 'f': return f32;
    case 'd': return f64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return sized(i8, i16, i32, i64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return sized(u8, u16, u32, u64);
    default: return {};
  }
}

struct HeldBuffer {
  Py_buffer view{};
  ~HeldBuffer() {
    if (!view.obj || !Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    PyBuffer_Release(&view);
  }
};

// The dtype of a number of NumPy, which exports its memory; Python's numbers have none.
std::optional<DType> dtype_of_number(PyObject* o) {
  if (PyFloat_CheckExact(o) || PyLong_Check(o) || !has_buffer(o)) return {};
  HeldBuffer held;
  if (PyObject_GetBuffer(o, &held.view, PyBUF_RECORDS_RO)) {
    PyErr_Clear();
    return {};
  }
  return dtype_of_format(held.view.format, held.view.itemsize);
}

// The shape of nested lists, their numbers and the dtype that holds them.
struct Nested {
  Shape shape;
  std::vector<Scalar> numbers;
  std::vector<Tensor> tensors;  // where the innermost are tensors

  DType dtype() const {
    const DType plain = natural(kind_, numbers.empty());
    if (!exact_ || all_exact_) return exact_.value_or(plain);
    // Python's numbers are weak: 1 beside an int8 is one, 2.5 beside it makes a float.
    const auto rank = [](DType d) { return is_floating(d) ? 2 : d == boolean ? 0 : 1; };
    return rank(plain) > rank(*exact_) ? plain : *exact_;
  }

  void read(PyObject* o, int depth) {
    if (!is_list(o)) return leaf(o, depth);
    const Py_ssize_t n = PySequence_Size(o);
    if (n < 0) throw ErrorIsSet();
    if (depth == shape.size()) {
      if (!numbers.empty() || !tensors.empty()) ragged();
      shape.push_back(n);
    } else if (shape[depth] != n) {
      ragged();
    }
    for (Py_ssize_t i = 0; i < n; ++i) {  // an item that is converted may change the list
      const nb::object item = nb::steal(PySequence_GetItem(o, i));
      if (!item.is_valid()) throw ErrorIsSet();
      read(item.ptr(), depth + 1);
    }
  }
  void leaf(PyObject* o, int depth) {
    if (depth != shape.size()) ragged();
    if (const Tensor* x = tensor_in(o)) tensors.push_back(*x);
    else if (has_buffer(o) && !is_number(o)) tensors.push_back(from_buffer(o).clone());
    else {
      const auto number = maybe_scalar(o);
      if (!number) raise(PyExc_TypeError, std::string("tensor(): a tensor holds numbers, not ") + type_name_of(o));
      numbers.push_back(*number);
      if (const auto dtype = dtype_of_number(o)) {
        exact_ = exact_ ? promote(*exact_, *dtype) : *dtype;
      } else {
        all_exact_ = false;
        kind_ = std::max(kind_, number->kind());
      }
    }
    if (!numbers.empty() && !tensors.empty()) ragged();
  }
  [[noreturn]] static void ragged() {
    throw Error(Error::Kind::shape, "tensor", "the nested lists are ragged: lists at one depth differ in length");
  }

 private:
  volta::Kind kind_ = volta::Kind::boolean;  // of Python's numbers
  std::optional<DType> exact_;               // of NumPy's numbers, promoted
  bool all_exact_ = true;
};

template <class T> void put(void* out, const std::vector<Scalar>& numbers) {
  T* p = static_cast<T*>(out);
  for (const Scalar& s : numbers) *p++ = s.as<T>();
}

Tensor tensor_of_numbers(const Nested& nested, DType dtype) {
  const Tensor x = empty(nested.shape, {.dtype = dtype});
  visit(dtype, [&]<class T>(TypeTag<T>) {
    for (const Scalar& s : nested.numbers)
      if (!s.fits<T>())
        throw Error(Error::Kind::argument, "tensor", "a number does not fit dtype " + std::string(python_name(dtype)));
    put<T>(x.raw_data(), nested.numbers);
  });
  return x;
}

const char* format_of(DType dtype) {
  static constexpr const char* formats[] = {"e", nullptr, "f", "d", "b", "h", "i", "q", "B", "H", "I", "Q", "?"};
  return formats[size_t(dtype)];
}

Tensor from_view(std::shared_ptr<HeldBuffer> held) {
  const Py_buffer& view = held->view;
  const auto dtype = dtype_of_format(view.format, view.itemsize);
  if (!dtype)
    throw Error(Error::Kind::dtype, "from_numpy",
                std::string("no dtype for elements of format '") + (view.format ? view.format : "?") + "'");
  Shape shape, strides;
  for (int i = 0; i < view.ndim; ++i) {
    shape.push_back(view.shape[i]);
    if (view.strides[i] % view.itemsize && view.shape[i] > 1)
      throw Error(Error::Kind::argument, "from_numpy", "the strides are no multiples of an element's size");
    strides.push_back(view.strides[i] / view.itemsize);
  }
  if (reinterpret_cast<uintptr_t>(view.buf) % size_t(view.itemsize))
    throw Error(Error::Kind::argument, "from_numpy", "the memory is not aligned to its elements");
  return from_memory(view.buf, shape, strides, *dtype, "cpu", [held = std::move(held)]() mutable { held.reset(); });
}

}  // namespace

Tensor from_memory(void* data, const Shape& shape, const Shape& strides, DType dtype, const Device& device,
                   std::function<void()> release) {
  Layout layout{shape, strides, 0};
  const Extent reach = extent(layout);
  // Storage begins at the first element touched: with negative strides that is not the first of the tensor.
  const int64_t before = reach.end > reach.begin ? reach.begin : 0;
  char* first = static_cast<char*>(data) + before * int64_t(traits(dtype).size);
  layout.offset = -before;
  const Tensor all = from_blob(first, {std::max<int64_t>(0, reach.end - reach.begin)},
                               {.dtype = dtype, .device = device}, std::move(release));
  return alias(all, layout);
}

bool has_buffer(PyObject* o) { return PyObject_CheckBuffer(o); }

Tensor from_buffer(PyObject* exporter) {
  auto held = std::make_shared<HeldBuffer>();
  if (PyObject_GetBuffer(exporter, &held->view, PyBUF_RECORDS_RO)) throw ErrorIsSet();
  return from_view(std::move(held));
}

Tensor tensor_of(PyObject* data, std::optional<DType> dtype, const Device& device) {
  Tensor x;
  if (const Tensor* given = tensor_in(data)) {
    x = given->detach().clone();
  } else if (!is_list(data) && has_buffer(data) && !is_number(data)) {
    x = from_buffer(data).clone();
  } else {
    Nested nested;
    nested.read(data, 0);
    if (!nested.tensors.empty()) {
      x = stack(nested.tensors).detach();
      const Shape inner = nested.tensors[0].shape();
      Shape whole = nested.shape;
      for (int64_t n : inner) whole.push_back(n);
      x = x.reshape(whole);
    } else {
      x = tensor_of_numbers(nested, dtype.value_or(nested.dtype()));
    }
  }
  if (dtype) x = x.to(*dtype);
  return x.to(device);
}

PyObject* to_list(const Tensor& x) {
  if (x.dim() == 0) return wrap(x.item());
  const int64_t n = x.size(0);
  PyObject* list = PyList_New(n);
  if (x.dim() == 1 && x.device().is_cpu()) {
    visit(x.dtype(), [&]<class T>(TypeTag<T>) {
      const T* p = x.data<T>();
      for (int64_t i = 0; i < n; ++i) PyList_SetItem(list, i, wrap(Scalar(p[i * x.stride(0)])));
    });
    return list;
  }
  const Tensor host = x.to("cpu");
  for (int64_t i = 0; i < n; ++i) PyList_SetItem(list, i, to_list(host.select(0, i)));
  return list;
}

namespace {
// What a buffer of ours needs while somebody looks at it. The tensor itself may get other memory: x.data = y.
struct Shown {
  Tensor memory;
  Py_ssize_t shape[Shape::max_rank], strides[Shape::max_rank];
};
}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& x = handle_of(self);
  view->obj = nullptr;
  const char* problem = nullptr;
  if (!x.defined()) problem = "an undefined tensor has no buffer";
  else if (!x.device().is_cpu()) problem = "a tensor on another device than the CPU has no buffer: use x.to('cpu')";
  else if (x.requires_grad()) problem = "a tensor that requires grad has no buffer: use x.detach()";
  else if (!format_of(x.dtype())) problem = "bfloat16 has no counterpart in Python's buffers: convert it first";
  else if (!(flags & PyBUF_STRIDES) && !x.is_contiguous())
    problem = "a buffer without strides needs a contiguous tensor";
  if (problem) {
    PyErr_SetString(PyExc_BufferError, problem);
    return -1;
  }
  const int rank = int(x.dim());
  const Py_ssize_t each = Py_ssize_t(traits(x.dtype()).size);
  auto* shown = new (std::nothrow) Shown;
  if (!shown) return PyErr_NoMemory(), -1;
  for (int i = 0; i < rank; ++i) {
    shown->shape[i] = Py_ssize_t(x.size(i));
    shown->strides[i] = Py_ssize_t(x.stride(i)) * each;
  }
  shown->memory = x.detach();
  view->obj = Py_NewRef(self);
  view->buf = x.raw_data();
  view->len = Py_ssize_t(x.nbytes());
  view->itemsize = each;
  view->readonly = 0;
  view->ndim = rank;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(x.dtype())) : nullptr;
  view->shape = flags & PyBUF_ND ? shown->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shown->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = shown;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Shown*>(view->internal); }

}  // namespace volta::python
