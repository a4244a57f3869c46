// Writes protocol 2, as torch.save does, with no memo: every value stands where it is used.
#include "io/endian.h"
#include "io/json.h"
#include "io/pickle.h"

namespace volta::io {
namespace {

class Pickler {
 public:
  Pickler(const FileContext& context, const TensorSink& tensors) : context_(context), tensors_(tensors) {}
  std::string run(const TorchValue& value) {
    out_ = "\x80\x02";
    write(value, 0);
    return out_ + ".";
  }

 private:
  using Kind = TorchValue::Kind;
  void write(const TorchValue& value, int depth) {
    require(depth <= max_pickle_depth, ErrorKind::argument, context_.op, context_.path,
            ": values are nested too deeply");
    switch (value.kind()) {
      case Kind::none: out_ += 'N'; break;
      case Kind::truth: out_ += value.as_boolean() ? '\x88' : '\x89'; break;
      case Kind::integer: integer(value.as_integer()); break;
      case Kind::real: real(value.as_number()); break;
      case Kind::string: text(value.as_string()); break;
      case Kind::tensor: tensor(value.as_tensor()); break;
      case Kind::list:
        out_ += "](";
        for (const TorchValue& item : value.items()) write(item, depth + 1);
        out_ += 'e';
        break;
      case Kind::tuple:
        out_ += '(';
        for (const TorchValue& item : value.items()) write(item, depth + 1);
        out_ += 't';
        break;
      case Kind::dict:
        out_ += "}(";
        for (const auto& [key, item] : value.entries()) {
          require(key.is(Kind::string) || key.is(Kind::integer), ErrorKind::argument, context_.op, context_.path,
                  ": a dictionary has a key that is neither a str nor an int");
          write(key, depth + 1);
          write(item, depth + 1);
        }
        out_ += 'u';
        break;
    }
  }
  void integer(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += {'K', char(value)};
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      append_little(out_, uint32_t(int32_t(value)));
    } else {
      out_ += "\x8a\x08";
      append_little(out_, uint64_t(value));
    }
  }
  void real(double value) {
    out_ += 'G';
    append_little(out_, byte_swapped(std::bit_cast<uint64_t>(value)));
  }
  void text(std::string_view value) {
    require(is_utf8(value) && value.size() < UINT32_MAX, ErrorKind::argument, context_.op, context_.path,
            ": a text is not UTF-8");
    out_ += 'X';
    append_little(out_, uint32_t(value.size()));
    out_ += value;
  }
  void global(std::string_view module, std::string_view name) { ((((out_ += 'c') += module) += '\n') += name) += '\n'; }
  void sizes(const Shape& shape) {
    out_ += '(';
    for (const int64_t size : shape) integer(size);
    out_ += 't';
  }
  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, OrderedDict()); v3 has the dtype behind these.
  void tensor(const Tensor& x) {
    require(x.defined(), ErrorKind::argument, context_.op, context_.path, ": a tensor is undefined");
    const PickledTensor t = tensors_(x);
    const std::string_view storage = torch_storage_name(t.dtype);
    const bool typed = !storage.empty();
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += "((";
    text("storage");
    if (typed) global("torch", storage);
    else global("torch.storage", "UntypedStorage");
    text(t.storage);
    text("cpu");
    integer(t.storage_bytes / (typed ? size_of(t.dtype) : 1));
    out_ += "tQ";
    integer(t.layout.offset);
    sizes(t.layout.shape);
    sizes(t.layout.strides);
    out_ += '\x89';
    global("collections", "OrderedDict");
    out_ += ")R";
    if (!typed) global("torch", torch_dtype_name(t.dtype));
    out_ += "tR";
  }
  const FileContext& context_;
  const TensorSink& tensors_;
  std::string out_;
};

}  // namespace

std::string pickle(const FileContext& context, const TorchValue& value, const TensorSink& tensors) {
  return Pickler(context, tensors).run(value);
}

}  // namespace volta::io
