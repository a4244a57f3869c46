// The .npy format, versions 1.0 to 3.0: a magic word, a header that is a Python dictionary, the elements.
#include "io/npy.h"

#include <charconv>
#include <cstring>
#include <optional>

#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "io/endian.h"
#include "io/json.h"

namespace volta::io {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr size_t largest_header = 1 << 16;
constexpr std::string_view suffix = ".npy";

// By DType, without the byte order; bf16 has none.
constexpr std::string_view codes[dtype_count] = {"f2", "",   "f4", "f8", "i1", "i2", "i4",
                                                 "i8", "u1", "u2", "u4", "u8", "b1"};

// What the Errors of one array begin with.
struct ArrayContext {
  const FileContext& file;
  const std::string& name;
  template <class... Parts> void require(bool fine, const Parts&... parts) const {
    if (fine) return;
    if (name.empty()) file.fail(parts...);
    file.fail("array '", name, "': ", parts...);
  }
  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    require(false, parts...);
    __builtin_unreachable();
  }
};

struct Header {
  DType dtype = f32;
  bool swapped = false, fortran = false;
  Shape shape = {};
};

// The dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and nothing else that Python can say.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const ArrayContext& context) : text_(text), context_(context) {}

  Header read() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!takes('}')) {
      const std::string key = string();
      expect(':');
      bool& seen = key == "descr" ? descr : key == "fortran_order" ? order : shape;
      context_.require((&seen != &shape || key == "shape") && !seen, "its header has the unknown or repeated key '",
                       key, "'");
      seen = true;
      if (key == "descr") read_dtype(header);
      else if (key == "fortran_order") header.fortran = truth();
      else header.shape = tuple();
      if (!takes(',')) {
        expect('}');
        break;
      }
    }
    context_.require(next() == '\0' && at_ >= text_.size(), "something follows its header");
    context_.require(descr && order && shape, "its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(char c) {
    if (next() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) { context_.require(takes(c), "its header is damaged at byte ", at_); }
  std::string string() {
    const char quote = next();
    context_.require(quote == '\'' || quote == '"', "its header is damaged at byte ", at_);
    const size_t end = text_.find(quote, ++at_);
    context_.require(end != std::string_view::npos && end - at_ < 100, "its header is damaged at byte ", at_);
    const std::string text(text_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  bool truth() {
    next();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    context_.fail("its header's fortran_order is neither True nor False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!takes(')')) {
      next();
      int64_t size = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      context_.require(error == std::errc() && size >= 0, "its header's shape is damaged");
      context_.require(shape.size() < Shape::max_rank, "it has more than ", Shape::max_rank, " axes");
      shape.push_back(size);
      at_ += size_t(end - begin);
      takes('L');  // as Python 2 wrote long numbers
      if (!takes(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void read_dtype(Header& header) {
    context_.require(next() != '[', "its elements are records of several fields, which is not supported");
    const std::string text = string();
    const char order = text.empty() ? '\0' : text[0];
    const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    const std::string_view code = std::string_view(text).substr(has_order ? 1 : 0);
    for (int i = 0; i < dtype_count; ++i)
      if (!code.empty() && code == codes[i]) {
        header.dtype = DType(i);
        header.swapped = order == (std::endian::native == std::endian::little ? '>' : '<') && size_of(DType(i)) > 1;
        return;
      }
    refuse(text, code);
  }
  [[noreturn]] void refuse(const std::string& text, std::string_view code) {
    const char kind = code.empty() ? '\0' : code[0];
    const char* const why = kind == 'O'                                 ? "Python objects, which are never read"
                            : kind == 'c'                               ? "complex numbers, which are not supported"
                            : kind == 'U' || kind == 'S' || kind == 'a' ? "texts, which are not supported"
                            : kind == 'M' || kind == 'm'                ? "dates or times, which are not supported"
                            : kind == 'V' ? "raw bytes; if they are bfloat16, convert them to float32 before saving"
                                          : "of a type that is not supported";
    context_.fail("its elements ('", text, "') are ", why);
  }
  std::string_view text_;
  const ArrayContext& context_;
  size_t at_ = 0;
};

int64_t checked_bytes(const ArrayContext& context, const Header& header) {
  Checked bytes = size_of(header.dtype);
  bool empty = false;
  for (const int64_t size : header.shape) {
    empty |= size == 0;
    bytes *= std::max<int64_t>(size, 1);
  }
  context.require(bytes.fits(), "shape ", header.shape, " is too large");
  return empty ? 0 : bytes.value_or(0);
}

std::string header_text(const Tensor& x) {
  std::string shape;
  for (const int64_t size : x.shape()) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (x.dim() == 1) shape += ",";
  const char* const order = size_of(x.dtype()) == 1 ? "|" : "<";
  std::string text = "{'descr': '" + std::string(order) + std::string(codes[size_t(x.dtype())]) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // NumPy leaves room for the first size to grow while a file is appended to.
  if (x.dim() > 0) text.append(21 - std::to_string(x.size(0)).size(), ' ');
  const size_t before = magic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string out(magic);
  out += {'\1', '\0'};
  append_little(out, uint16_t(text.size()));
  return out + text;
}

const Tensor& writable(const char* op, const std::string& path, const std::string& name, const Tensor& x) {
  const std::string which = name.empty() ? "the tensor" : "tensor '" + name + "'";
  require(x.defined(), ErrorKind::argument, op, path, ": ", which, " is undefined");
  require(x.dtype() != bf16, ErrorKind::dtype, op, path, ": ", which,
          " is of bf16, which NumPy does not have; write x.to(f32) instead");
  return x;
}

}  // namespace

bool looks_like_npy(Bytes file) { return as_text(file).starts_with(magic); }

Tensor read_npy(const ZipContent& content, const std::string& name) {
  const ArrayContext context{content.file->context(), name};
  const Bytes bytes = content.bytes();
  context.require(looks_like_npy(bytes) && bytes.size() >= 10,
                  "not a .npy array: it does not begin with its magic word");
  const int major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
  context.require(major >= 1 && major <= 3 && minor == 0, "version ", major, ".", minor, " of the format is unknown");
  const size_t before = major == 1 ? 10 : 12;
  context.require(bytes.size() >= before, "the file is truncated");
  const size_t length = major == 1 ? load_little<uint16_t>(bytes, 8) : load_little<uint32_t>(bytes, 8);
  context.require(length <= bytes.size() - before && length <= largest_header, "its header of ", length,
                  " bytes does not lie within the file");
  const Header header = HeaderReader(as_text(bytes.subspan(before, length)), context).read();
  const int64_t wanted = checked_bytes(context, header);
  const size_t there = bytes.size() - before - length;
  context.require(uint64_t(wanted) == there, "shape ", header.shape, " of ", header.dtype, " takes ", wanted,
                  " bytes, the file has ", there);
  Shape shape = header.shape, axes;
  if (header.fortran) std::reverse(shape.begin(), shape.end());
  Tensor x = tensor_in(content.file, content.begin + before + length, shape, header.dtype, name);
  if (header.swapped && x.numel() > 0) {
    x = x.clone();
    swap_elements(static_cast<std::byte*>(x.raw_data()), size_t(x.nbytes()), size_t(size_of(x.dtype())));
  }
  if (!header.fortran || x.dim() < 2) return x;
  for (int i = shape.size() - 1; i >= 0; --i) axes.push_back(i);
  return x.permute(axes).contiguous();
}

StateDict read_npz(const std::shared_ptr<MappedFile>& file) {
  return file->context().about([&] {
    const ZipArchive archive(file);
    StateDict state;
    for (const ZipMember& member : archive.members()) {
      archive.context().require(member.name.ends_with(suffix), "member '", member.name, "' is not an array (.npy)");
      const std::string name = member.name.substr(0, member.name.size() - suffix.size());
      state.add(name, read_npy(archive.read(member), name));
    }
    return state;
  });
}

}  // namespace volta::io

namespace volta {

Tensor read_npy(const std::string& path) {
  const auto file = io::MappedFile::open("read_npy", path);
  const NoGrad off;
  return file->context().about([&] { return io::read_npy({file, 0, file->bytes().size()}, ""); });
}

void write_npy(const std::string& path, const Tensor& x) {
  const char* const op = "write_npy";
  const std::string header = io::header_text(io::writable(op, path, "", x));
  io::FileContext{op, path}.about([&] {
    io::AtomicFile file(op, path);
    file.reserve(x.nbytes() + int64_t(header.size()));
    file.write(header);
    file.write(io::HostBytes(x).bytes);
    file.commit();
  });
}

Tensor parse_npy(std::string_view bytes, const std::string& name) {
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  const auto file = io::MappedFile::of_memory("parse_npy", name, {begin, begin + bytes.size()});
  const NoGrad off;
  return io::read_npy({file, 0, file->bytes().size()}, "");
}

std::string npy_bytes(const Tensor& x) {
  std::string out = io::header_text(io::writable("npy_bytes", "the result", "", x));
  return out.append(io::as_text(io::HostBytes(x).bytes));
}

StateDict read_npz(const std::string& path) {
  const NoGrad off;
  return io::read_npz(io::MappedFile::open("read_npz", path));
}

void write_npz(const std::string& path, const StateDict& state) {
  const char* const op = "write_npz";
  for (const auto& [name, x] : state) {
    io::writable(op, path, name, x);
    require(io::is_utf8(name) && name.size() < 60000 && name.find('\0') == std::string::npos, ErrorKind::argument, op,
            path, ": the name ", io::json_quote(name.substr(0, 40)),
            " is not UTF-8, holds a zero byte, or is too long");
  }
  io::FileContext{op, path}.about([&] {
    io::AtomicFile file(op, path);
    io::ZipWriter zip(file);
    for (const auto& [name, x] : state)
      zip.add(name + std::string(io::suffix), {io::as_bytes(io::header_text(x)), io::HostBytes(x).bytes});
    zip.finish();
    file.commit();
  });
}

}  // namespace volta
