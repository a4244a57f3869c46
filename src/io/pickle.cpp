// The machine that a pickle drives: a stack, a memo, and an allow-list of the few functions that it may name.
#include "io/pickle.h"

#include <algorithm>
#include <deque>
#include <new>
#include <unordered_map>

#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "io/endian.h"
#include "io/json.h"

namespace volta::io {
namespace {

constexpr size_t largest_pickle = size_t(64) << 20;
constexpr size_t most_objects = size_t(8) << 20;  // also of the values that they make
constexpr size_t most_text = size_t(256) << 20;

constexpr std::string_view storage_names[dtype_count] = {"HalfStorage",
                                                         "BFloat16Storage",
                                                         "FloatStorage",
                                                         "DoubleStorage",
                                                         "CharStorage",
                                                         "ShortStorage",
                                                         "IntStorage",
                                                         "LongStorage",
                                                         "ByteStorage",
                                                         "",
                                                         "",
                                                         "",
                                                         "BoolStorage"};
constexpr std::string_view dtype_names[dtype_count] = {"float16", "bfloat16", "float32", "float64", "int8",
                                                       "int16",   "int32",    "int64",   "uint8",   "uint16",
                                                       "uint32",  "uint64",   "bool"};

using Id = uint32_t;  // of an object: they refer to each other by number, and may do so in circles

struct Object {
  enum class Kind : uint8_t {
    none,
    truth,
    integer,
    real,
    string,
    list,
    tuple,
    dict,
    tensor,
    storage,
    dtype,
    function,
    mark
  };
  Kind kind = Kind::none;
  int64_t integer = 0;  // also a function, or the bytes of a storage
  double real = 0;
  std::string text = {};       // also the key of a storage
  std::vector<Id> items = {};  // of a dictionary: keys and values by turns
  Tensor tensor = {};
  std::optional<DType> dtype = {};
};
using Kind = Object::Kind;

enum Function : int64_t {
  ordered_dict,
  counter,
  set_of,
  rebuild_tensor_v2,
  rebuild_tensor_v3,
  rebuild_parameter,
  torch_size,
  torch_device,
  typed_storage,
  untyped_storage
};

class Unpickler {
 public:
  Unpickler(const FileContext& context, Bytes pickle, const TensorSource& tensors)
      : context_(context), in_(pickle), tensors_(tensors) {
    for (const Kind kind : {Kind::none, Kind::mark, Kind::truth, Kind::truth}) objects_.emplace_back().kind = kind;
    objects_[yes].integer = 1;
  }
  TorchValue run() {
    while (!step()) {}
    context_.require(stack_.size() == 1, "the pickle leaves ", stack_.size(), " values instead of one");
    budget_ = std::min(16 * in_.size() + 1024, most_objects);
    text_budget_ = std::min(256 * in_.size() + 1024, most_text);
    return value_of(stack_[0], 0);
  }

 private:
  static constexpr Id none = 0, mark = 1, yes = 2, no = 3;

  // Input.
  Bytes take(uint64_t bytes) {
    context_.require(bytes <= in_.size() - at_, "the pickle ends too early");
    const Bytes part = in_.subspan(at_, size_t(bytes));
    at_ += size_t(bytes);
    return part;
  }
  template <class T> uint64_t number() { return load_little<T>(take(sizeof(T)), 0); }
  std::string line() {
    const std::string_view rest = as_text(in_.subspan(at_));
    const size_t end = rest.find('\n');
    context_.require(end != std::string_view::npos && end < 1000, "the pickle ends in the middle of a name");
    at_ += end + 1;
    return std::string(rest.substr(0, end));
  }

  // Stack.
  Object& object(Id id) { return objects_[id]; }
  Id made(Kind kind) {
    context_.require(objects_.size() < most_objects, "the pickle holds more than ", most_objects, " objects");
    objects_.emplace_back().kind = kind;
    return Id(objects_.size() - 1);
  }
  Object& push(Kind kind) {
    stack_.push_back(made(kind));
    return objects_.back();
  }
  Id pop() {
    context_.require(!stack_.empty() && stack_.back() != mark, "the pickle takes a value that is not there");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Id top() {
    context_.require(!stack_.empty() && stack_.back() != mark, "the pickle takes a value that is not there");
    return stack_.back();
  }
  std::vector<Id> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1] != mark) --begin;
    context_.require(begin > 0, "the pickle has no mark where it needs one");
    std::vector<Id> items(stack_.begin() + std::ptrdiff_t(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }
  void remember(uint64_t place) { memo_[place] = top(); }
  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    context_.require(found != memo_.end(), "the pickle recalls what it has not stored");
    stack_.push_back(found->second);
  }

  void push_text(uint64_t bytes) {
    const std::string_view text = as_text(take(bytes));
    context_.require(is_utf8(text), "the pickle holds a text that is not UTF-8");
    push(Kind::string).text = text;
  }
  // Two's complement of any length; those beyond 64 bits have no place here.
  void push_long(uint64_t bytes) {
    const Bytes digits = take(bytes);
    context_.require(bytes <= 8, "the pickle holds a whole number of more than 64 bits");
    uint64_t value = bytes > 0 && (std::to_integer<int>(digits.back()) & 0x80) ? ~uint64_t(0) : 0;
    for (size_t i = digits.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(digits[i]);
    push(Kind::integer).integer = int64_t(value);
  }
  void push_tuple(size_t count) {
    std::vector<Id> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push(Kind::tuple).items = std::move(items);
  }
  void append(Id list, const std::vector<Id>& items) {
    context_.require(object(list).kind == Kind::list, "the pickle appends to something that is not a list");
    object(list).items.insert(object(list).items.end(), items.begin(), items.end());
  }
  void set_items(Id dict, const std::vector<Id>& items) {
    context_.require(object(dict).kind == Kind::dict, "the pickle sets items of something that is not a dictionary");
    context_.require(items.size() % 2 == 0, "the pickle sets a key without a value");
    object(dict).items.insert(object(dict).items.end(), items.begin(), items.end());
  }

  bool step();
  void push_global(const std::string& module, const std::string& name);
  void reduce();
  void build();
  void persistent();
  const Object& argument(const Object& tuple, size_t i, Kind kind);
  Id taken(const Object& tuple, Kind kind) {  // the first argument, which is the result too
    argument(tuple, 0, kind);
    return tuple.items[0];
  }
  Shape sizes(const Object& tuple);
  void rebuild_tensor(const Object& arguments, bool with_dtype);
  bool negated(const Object& arguments, size_t place);
  TorchValue value_of(Id id, int depth);

  const FileContext& context_;
  Bytes in_;
  const TensorSource& tensors_;
  size_t at_ = 0;
  std::deque<Object> objects_;
  std::vector<Id> stack_;
  std::unordered_map<uint64_t, Id> memo_;
  size_t copied_ = 0;                    // pairs, into dictionaries
  size_t budget_ = 0, text_budget_ = 0;  // of values and bytes of texts: what is recalled often is copied often
};

// One opcode; true for the last.
bool Unpickler::step() {
  const auto code = number<uint8_t>();
  switch (code) {
    case '.': return true;                                                                               // STOP
    case 0x80: context_.require(number<uint8_t>() <= 5, "the pickle is of an unknown protocol"); break;  // PROTO
    case 0x95: take(8); break;                                                                           // FRAME
    case 'N': stack_.push_back(none); break;
    case 0x88: stack_.push_back(yes); break;
    case 0x89: stack_.push_back(no); break;
    case '(': stack_.push_back(mark); break;
    case '}': push(Kind::dict); break;
    case ']': push(Kind::list); break;
    case 0x8f: push(Kind::list); break;  // EMPTY_SET, whose items follow
    case ')': push(Kind::tuple); break;
    case 'J': push(Kind::integer).integer = int32_t(number<uint32_t>()); break;
    case 'K': push(Kind::integer).integer = int64_t(number<uint8_t>()); break;
    case 'M': push(Kind::integer).integer = int64_t(number<uint16_t>()); break;
    case 0x8a: push_long(number<uint8_t>()); break;
    case 0x8b: push_long(number<uint32_t>()); break;
    case 'G': push(Kind::real).real = std::bit_cast<double>(load_big<uint64_t>(take(8), 0)); break;
    case 'X': push_text(number<uint32_t>()); break;
    case 'T': push_text(number<uint32_t>()); break;
    case 'U': push_text(number<uint8_t>()); break;
    case 0x8c: push_text(number<uint8_t>()); break;
    case 0x8d: push_text(number<uint64_t>()); break;
    case 't': {
      std::vector<Id> items = pop_to_mark();
      push(Kind::tuple).items = std::move(items);
      break;
    }
    case 0x85: push_tuple(1); break;
    case 0x86: push_tuple(2); break;
    case 0x87: push_tuple(3); break;
    case 'l': {
      std::vector<Id> items = pop_to_mark();
      push(Kind::list).items = std::move(items);
      break;
    }
    case 'd': {
      const std::vector<Id> items = pop_to_mark();
      push(Kind::dict);
      set_items(top(), items);
      break;
    }
    case 'a': {
      const Id item = pop();
      append(top(), {item});
      break;
    }
    case 0x90:  // ADDITEMS, to a set
    case 'e': {
      const std::vector<Id> items = pop_to_mark();
      append(top(), items);
      break;
    }
    case 's': {
      const Id value = pop(), key = pop();
      set_items(top(), {key, value});
      break;
    }
    case 'u': {
      const std::vector<Id> items = pop_to_mark();
      set_items(top(), items);
      break;
    }
    case 'q': remember(number<uint8_t>()); break;
    case 'r': remember(number<uint32_t>()); break;
    case 0x94: remember(memo_.size()); break;
    case 'h': recall(number<uint8_t>()); break;
    case 'j': recall(number<uint32_t>()); break;
    case '0': pop(); break;
    case '2': stack_.push_back(top()); break;
    case 'c': {
      const std::string module = line(), name = line();
      push_global(module, name);
      break;
    }
    case 0x93: {
      const std::string name = object(pop()).text, module = object(pop()).text;
      push_global(module, name);
      break;
    }
    case 'Q': persistent(); break;
    case 'R': reduce(); break;
    case 'b': build(); break;
    default:
      context_.fail("the pickle uses opcode ", int64_t(code), " at byte ", int64_t(at_ - 1),
                    ", which torch.save does not write for tensors, containers, numbers and texts");
  }
  return false;
}

void Unpickler::push_global(const std::string& module, const std::string& name) {
  const std::string full = module + "." + name;
  static const std::unordered_map<std::string, Function> allowed = {
      {"collections.OrderedDict", ordered_dict},
      {"collections.Counter", counter},  // of MultiStepLR
      {"builtins.set", set_of},
      {"__builtin__.set", set_of},
      {"torch._utils._rebuild_tensor_v2", rebuild_tensor_v2},
      {"torch._utils._rebuild_tensor_v3", rebuild_tensor_v3},
      {"torch._utils._rebuild_parameter", rebuild_parameter},
      {"torch.Size", torch_size},
      {"torch.device", torch_device},
      {"torch.storage.UntypedStorage", untyped_storage},
      {"torch.UntypedStorage", untyped_storage},
  };
  if (const auto found = allowed.find(full); found != allowed.end()) {
    push(Kind::function).integer = found->second;
    return;
  }
  for (int i = 0; i < dtype_count && (module == "torch" || module == "torch.cuda"); ++i) {
    if (!storage_names[i].empty() && name == storage_names[i]) {
      Object& type = push(Kind::function);
      type.integer = typed_storage;
      type.dtype = DType(i);
      return;
    }
    if (name == dtype_names[i]) {
      push(Kind::dtype).dtype = DType(i);
      return;
    }
  }
  const bool number_type = module == "torch" && (name.ends_with("Storage") || name.starts_with("complex") ||
                                                 name.starts_with("float8") || name.starts_with("q"));
  context_.fail("the file names '", full.substr(0, 200), "', ",
                number_type ? "a dtype that has no counterpart here; convert it in PyTorch first"
                            : "which is not among the few functions that are allowed: nothing in a file is executed. "
                              "Save a state_dict() of tensors, containers, numbers and texts instead");
}

const Object& Unpickler::argument(const Object& tuple, size_t i, Kind kind) {
  context_.require(i < tuple.items.size() && object(tuple.items[i]).kind == kind,
                   "the pickle calls a function with arguments that do not fit it");
  return object(tuple.items[i]);
}

Shape Unpickler::sizes(const Object& tuple) {
  context_.require(tuple.items.size() <= size_t(Shape::max_rank), "a tensor has more than ", Shape::max_rank, " axes");
  Shape shape;
  for (size_t i = 0; i < tuple.items.size(); ++i) shape.push_back(argument(tuple, i, Kind::integer).integer);
  return shape;
}

// What PyTorch notes of a tensor that is a view of others' numbers with another sign: {'neg': True}.
bool Unpickler::negated(const Object& arguments, size_t place) {
  if (place >= arguments.items.size() || object(arguments.items[place]).kind == Kind::none) return false;
  const std::vector<Id>& notes = argument(arguments, place, Kind::dict).items;
  bool negative = false;
  for (size_t i = 0; i + 1 < notes.size(); i += 2) {
    const std::string& note = object(notes[i]).text;
    const Object& set = object(notes[i + 1]);
    context_.require(set.kind == Kind::truth && (note == "neg" || (note == "conj" && set.integer == 0)),
                     "a tensor is marked as '", note.substr(0, 40), "', which has no counterpart here");
    if (note == "neg") negative = set.integer != 0;
  }
  return negative;
}

void Unpickler::rebuild_tensor(const Object& arguments, bool with_dtype) {
  const Object& storage = argument(arguments, 0, Kind::storage);
  PickledTensor t{.storage = storage.text, .storage_bytes = storage.integer};
  if (with_dtype) t.dtype = *argument(arguments, 6, Kind::dtype).dtype;
  else if (storage.dtype) t.dtype = *storage.dtype;
  else context_.fail("a tensor of an untyped storage has no dtype");
  t.layout.offset = argument(arguments, 1, Kind::integer).integer;
  t.layout.shape = sizes(argument(arguments, 2, Kind::tuple));
  t.layout.strides = sizes(argument(arguments, 3, Kind::tuple));
  Tensor tensor = tensors_(t);
  if (negated(arguments, with_dtype ? 7 : 6)) {
    context_.require(t.dtype != boolean && tensor.nbytes() <= t.storage_bytes,
                     "a tensor that is marked as negated is of bool, or larger than its storage");
    tensor = neg(tensor);
  }
  push(Kind::tensor).tensor = std::move(tensor);
}

void Unpickler::reduce() {
  const Id arguments = pop(), callee = pop();
  context_.require(object(callee).kind == Kind::function && object(arguments).kind == Kind::tuple,
                   "the pickle calls something that is not a function");
  const Object& tuple = object(arguments);
  switch (object(callee).integer) {
    case ordered_dict: {
      Object made = {.kind = Kind::dict};
      if (!tuple.items.empty())  // of a list of pairs
        for (const Id pair : argument(tuple, 0, Kind::list).items) {
          const auto& both = object(pair).items;
          context_.require(both.size() == 2, "the pickle makes a dictionary of something that is not pairs");
          context_.require(++copied_ <= most_objects, "the pickle makes dictionaries of one list too often");
          made.items.insert(made.items.end(), both.begin(), both.end());
        }
      push(Kind::dict).items = std::move(made.items);
      break;
    }
    case counter: stack_.push_back(tuple.items.empty() ? made(Kind::dict) : taken(tuple, Kind::dict)); break;
    case set_of: stack_.push_back(tuple.items.empty() ? made(Kind::list) : taken(tuple, Kind::list)); break;
    case rebuild_tensor_v2: rebuild_tensor(tuple, false); break;
    case rebuild_tensor_v3: rebuild_tensor(tuple, true); break;
    case rebuild_parameter: stack_.push_back(taken(tuple, Kind::tensor)); break;
    case torch_size: stack_.push_back(taken(tuple, Kind::tuple)); break;
    case torch_device: stack_.push_back(taken(tuple, Kind::string)); break;
    default: context_.fail("the pickle calls a type of storage");
  }
}

// Attributes of an OrderedDict (a state dict's _metadata) are left out.
void Unpickler::build() {
  pop();
  context_.require(object(top()).kind == Kind::dict,
                   "the pickle sets attributes of something that is not an OrderedDict");
}

// ('storage', torch.FloatStorage, key, location, number of elements)
void Unpickler::persistent() {
  const Id id = pop();
  const Object& tuple = object(id);
  context_.require(
      tuple.kind == Kind::tuple && tuple.items.size() == 5 && argument(tuple, 0, Kind::string).text == "storage",
      "the pickle refers to something that is not a storage");
  const Object& type = argument(tuple, 1, Kind::function);
  context_.require(type.integer == typed_storage || type.integer == untyped_storage,
                   "the pickle refers to a storage of an unknown type");
  const int64_t count = argument(tuple, 4, Kind::integer).integer;
  const Checked bytes = Checked(count) * (type.dtype ? size_of(*type.dtype) : 1);
  context_.require(bytes.within(0, INT64_MAX), "a storage of ", count, " elements is impossible");
  const std::string key = argument(tuple, 2, Kind::string).text;
  const std::optional<DType> dtype = type.dtype;
  Object& storage = push(Kind::storage);
  storage.text = key;
  storage.integer = bytes.value_or(0);
  storage.dtype = dtype;
}

TorchValue Unpickler::value_of(Id id, int depth) {
  context_.require(depth <= max_pickle_depth, "values are nested more than ", max_pickle_depth,
                   " deep, or in a circle");
  context_.require(budget_-- > 0, "the pickle repeats its values too often");
  const Object& o = object(id);
  switch (o.kind) {
    case Kind::none: return {};
    case Kind::truth: return o.integer != 0;
    case Kind::integer: return o.integer;
    case Kind::real: return o.real;
    case Kind::string:
      context_.require(o.text.size() <= text_budget_, "the pickle repeats its texts too often");
      text_budget_ -= o.text.size();
      return o.text;
    case Kind::tensor: return o.tensor;
    case Kind::dtype: return "torch." + std::string(dtype_names[size_t(*o.dtype)]);
    case Kind::list:
    case Kind::tuple: {
      std::vector<TorchValue> items;
      for (const Id item : o.items) items.push_back(value_of(item, depth + 1));
      return o.kind == Kind::list ? TorchValue::list(std::move(items)) : TorchValue::tuple(std::move(items));
    }
    case Kind::dict: {
      std::vector<TorchValue::Entry> entries;
      for (size_t i = 0; i + 1 < o.items.size(); i += 2)
        entries.emplace_back(value_of(o.items[i], depth + 1), value_of(o.items[i + 1], depth + 1));
      return TorchValue::dict(std::move(entries));
    }
    default: context_.fail("the pickle holds a function or a storage as a value");
  }
}

}  // namespace

std::string_view torch_storage_name(DType dtype) { return storage_names[size_t(dtype)]; }
std::string_view torch_dtype_name(DType dtype) { return dtype_names[size_t(dtype)]; }

TorchValue unpickle(const FileContext& context, Bytes pickle, const TensorSource& tensors) {
  context.require(pickle.size() <= largest_pickle, "its pickle has ", pickle.size(), " bytes, more than the ",
                  largest_pickle, " allowed");
  try {
    return Unpickler(context, pickle, tensors).run();
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, context.op, context.path, ": no memory for what its pickle makes");
  }
}

}  // namespace volta::io
