// Arguments: what a Python caller gave to an op, bound to its parameters, and read as C++ values.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/random.h>

namespace volta::python {

namespace nb = nanobind;

// Thrown where Python's error is already set.
struct ErrorIsSet {};
[[noreturn]] void raise(PyObject* type, const std::string& message);
std::string type_name_of(PyObject* value);  // for messages: str, mine.Class

// What a parameter takes, for choosing between overloads.
enum class Takes : uint8_t {
  tensor,
  operand,
  integer,
  number,
  truth,
  axes,
  shape,
  ints,
  integers,  // one or several
  tensors,
  text,
  dtype,
  device,
  generator,
  numbers,
  padding,
  callable,
  packed,
  nothing
};

struct Parameter {
  const char* name;
  Takes takes;
  bool required;
};

class Arguments;
struct Overload {
  const Parameter* parameters;
  int count;
  int variadic;  // the parameter that takes all numbers or tensors that are left, as in x.reshape(2, 3); -1 for none
  PyObject* (*call)(Arguments&);
  const char* signature;  // (input, dim, keepdim=False)
};

// A C function of Python: one op with all its forms.
struct Op {
  const char* name;
  const char* doc;
  const Overload* overloads;
  int count;
  enum Where { function = 1, method = 2 };
  int where;
  const char* module;
};

inline constexpr int most_parameters = 16;

class Arguments {
 public:
  Arguments(const char* op, const Overload& overload) : op_(op), overload_(overload) {}
  PyObject*& operator[](int i) { return values_[i]; }
  PyObject* operator[](int i) const { return values_[i]; }

  const Tensor& tensor(int i);
  const Tensor& maybe_tensor(int i);  // undefined where None was given
  Tensor& self() { return const_cast<Tensor&>(tensor(0)); }
  PyObject* self_object() const { return Py_NewRef(values_[0]); }
  template <class T> T get(int i);
  template <class T> T get(int i, const T& otherwise) { return values_[i] ? get<T>(i) : otherwise; }
  template <class T> void set(int i, T& field) {
    if (values_[i]) field = Reader<T>::read(*this, i);
  }
  template <class E> Choice<E> choice(int i) { return Choice<E>(text(i)); }
  std::string text(int i);

  [[noreturn]] void refuse(int i, const char* wanted) const;
  const char* op() const { return op_; }
  int64_t work() const { return work_; }
  void count(int64_t elements) { work_ += elements; }

 private:
  template <class T> struct Reader {
    static T read(Arguments& a, int i) { return a.get<T>(i); }
  };
  template <class E> struct Reader<Choice<E>> {
    static Choice<E> read(Arguments& a, int i) { return a.choice<E>(i); }
  };
  const char* op_;
  const Overload& overload_;
  int64_t work_ = 0;
  PyObject* values_[most_parameters] = {};
};

// Lets other Python threads run while it lives, if the op will take longer than that.
class Unlocked {
 public:
  explicit Unlocked(bool really = true);
  explicit Unlocked(const Arguments& a);
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};
// For the end of the interpreter: waits for ops that run in other threads, whose threads then stay where they are. Python
// would end them with their C++ frames on the stack, which ends the process.
void stop_unlocked_threads();

// Binds the arguments to the first overload that they fit, and calls it.
PyObject* call(const Op& op, PyObject* const* given, Py_ssize_t positional, PyObject* names) noexcept;

// Whether it can be read as what the parameter takes.
bool fits(Takes takes, PyObject* value);

// Numbers: bool, int, float, and what Python converts to these.
bool is_number(PyObject* value);
Scalar scalar_from(PyObject* value);
std::optional<Scalar> maybe_scalar(PyObject* value);
bool is_integer(PyObject* value);

}  // namespace volta::python
