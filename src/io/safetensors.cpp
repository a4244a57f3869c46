// A safetensors file: 8 bytes for the length of the header, the header as JSON, then the bytes of all tensors.
#include "io/safetensors.h"

#include <algorithm>
#include <cstring>

#include "core/checked_arithmetic.h"
#include "io/endian.h"
#include "io/json.h"

namespace volta::io {
namespace {

constexpr size_t length_bytes = 8;
constexpr uint64_t largest_header = 100'000'000;  // as the format's own library allows
constexpr const char* header_part = "the header";

// By DType.
constexpr std::string_view names[dtype_count] = {"F16", "BF16", "F32", "F64", "I8",  "I16", "I32",
                                                 "I64", "U8",   "U16", "U32", "U64", "BOOL"};
// The format's library writes tensors in descending order of this, then by name.
constexpr int ranks[dtype_count] = {6, 7, 10, 11, 2, 4, 8, 12, 1, 5, 9, 13, 0};

DType dtype_named(const FileContext& context, const std::string& tensor, const std::string& name) {
  for (int i = 0; i < dtype_count; ++i)
    if (names[i] == name) return DType(i);
  const bool known =
      name.starts_with("F8") || name.starts_with("F6") || name.starts_with("F4") || name.starts_with("C");
  context.fail("tensor '", tensor, "': dtype '", name.substr(0, 40), "' ",
               known ? "has no counterpart here; convert it to F16, BF16 or F32 first" : "is unknown");
}

int64_t size_of_axis(JsonReader& json, const std::string& tensor) {
  const int64_t size = json.integer();
  if (size < 0) json.fail("tensor '" + tensor + "' has a negative size or offset");
  return size;
}

SafetensorsEntry parse_entry(JsonReader& json, const FileContext& context, const std::string& name) {
  SafetensorsEntry entry{.name = name};
  bool has_dtype = false, has_shape = false, has_offsets = false;
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      entry.dtype = dtype_named(context, name, json.string());
      has_dtype = true;
    } else if (key == "shape") {
      json.array([&] {
        if (entry.shape.size() == Shape::max_rank)
          json.fail("tensor '" + name + "' has more than " + std::to_string(Shape::max_rank) + " axes");
        entry.shape.push_back(size_of_axis(json, name));
      });
      has_shape = true;
    } else if (key == "data_offsets") {
      int count = 0;
      json.array([&] {
        if (count == 2) json.fail("tensor '" + name + "' has more than two data_offsets");
        (count++ == 0 ? entry.begin : entry.end) = size_of_axis(json, name);
      });
      has_offsets = count == 2;
    } else {
      json.fail("tensor '" + name + "' has the unknown field '" + key + "'");
    }
  });
  context.require(has_dtype && has_shape && has_offsets, "tensor '", name,
                  "': the header lacks its dtype, shape or data_offsets");
  return entry;
}

void check_entry(const FileContext& context, const SafetensorsEntry& e, int64_t data_bytes) {
  context.require(e.begin <= e.end && e.end <= data_bytes, "tensor '", e.name, "': data_offsets ", e.begin, " to ",
                  e.end, " are not a range of the ", data_bytes, " bytes of data; is the file truncated?");
  Checked bytes = size_of(e.dtype);
  bool empty = false;
  for (const int64_t size : e.shape) {
    empty |= size == 0;
    bytes *= std::max<int64_t>(size, 1);
  }
  context.require(bytes.fits() && (empty ? 0 : bytes.value_or(0)) == e.end - e.begin, "tensor '", e.name, "': shape ",
                  e.shape, " of ", e.dtype, " does not take the ", e.end - e.begin, " bytes of its data_offsets");
}

void check_cover(const FileContext& context, const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  std::vector<const SafetensorsEntry*> sorted;
  for (const SafetensorsEntry& e : entries) sorted.push_back(&e);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  int64_t end = 0;
  for (const SafetensorsEntry* e : sorted) {
    context.require(e->begin == end, "tensor '", e->name, "' begins at byte ", e->begin, " of the data, ",
                    e->begin < end ? "within another: they overlap" : "behind a gap", "; expected ", end);
    end = e->end;
  }
  context.require(end == data_bytes, data_bytes - end, " bytes follow the last tensor");
}

}  // namespace

std::string_view safetensors_name(DType dtype) { return names[size_t(dtype)]; }

std::string little_endian_64(uint64_t value) {
  std::string text(8, '\0');
  for (int i = 0; i < 8; ++i) text[size_t(i)] = char(value >> 8 * i & 0xff);
  return text;
}

bool looks_like_safetensors(Bytes file) {
  return file.size() > length_bytes && file[length_bytes] == std::byte('{') &&
         load_little<uint64_t>(file, 0) <= file.size() - length_bytes;
}

SafetensorsHeader parse_safetensors_header(const MappedFile& file) {
  const FileContext& context = file.context();
  const Bytes bytes = file.bytes();
  context.require(bytes.size() > length_bytes, "not a safetensors file: it has ", bytes.size(), " bytes");
  const auto length = load_little<uint64_t>(bytes, 0);
  context.require(length <= bytes.size() - length_bytes && length <= largest_header,
                  "not a safetensors file, or a truncated one: it says that its header has ", length,
                  " bytes, but the file has ", bytes.size());
  context.require(length > 0 && bytes[length_bytes] == std::byte('{'),
                  "not a safetensors file: its header does not begin with '{'");
  SafetensorsHeader header{.data_begin = length_bytes + size_t(length)};
  const auto data_bytes = int64_t(bytes.size() - header.data_begin);
  JsonReader json(as_text(bytes.subspan(length_bytes, size_t(length))), context, header_part);
  json.object([&](const std::string& key) {
    if (key == "__metadata__") json.object([&](const std::string& k) { header.metadata.add(k, json.string()); });
    else check_entry(context, header.entries.emplace_back(parse_entry(json, context, key)), data_bytes);
  });
  json.end();
  check_cover(context, header.entries, data_bytes);
  return header;
}

StateDict read_safetensors(const std::shared_ptr<MappedFile>& file) {
  const SafetensorsHeader header = parse_safetensors_header(*file);
  return file->context().about([&] {
    StateDict state;
    for (const SafetensorsEntry& e : header.entries)
      state.add(e.name, tensor_in(file, header.data_begin + size_t(e.begin), e.shape, e.dtype, e.name));
    return state;
  });
}

namespace {

std::string entry_text(const SafetensorsEntry& e) {
  std::string sizes;
  for (const int64_t size : e.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  return json_quote(e.name) + ":{\"dtype\":\"" + std::string(safetensors_name(e.dtype)) + "\",\"shape\":[" + sizes +
         "],\"data_offsets\":[" + std::to_string(e.begin) + "," + std::to_string(e.end) + "]}";
}

std::string header_text(const SafetensorsLayout& layout, const Metadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata)
    text += (text.empty() ? "" : ",") + json_quote(key) + ":" + json_quote(value);
  if (!text.empty()) text = "\"__metadata__\":{" + text + "}";
  for (const auto& [entry, tensor] : layout.tensors) text += (text.empty() ? "" : ",") + entry_text(entry);
  text = "{" + text + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

SafetensorsLayout lay_out_safetensors(const FileContext& context, const StateDict& state, const Metadata& metadata) {
  const auto check = [&](bool fine, const auto&... parts) {
    require(fine, ErrorKind::argument, context.op, context.path, ": ", parts...);
  };
  for (const auto& [key, value] : metadata) check(is_utf8(key) && is_utf8(value), "metadata '", key, "' is not UTF-8");
  SafetensorsLayout layout;
  for (const auto& [name, x] : state) {
    check(name != "__metadata__", "a tensor cannot be named __metadata__");
    check(is_utf8(name), "the name '", name, "' is not UTF-8");
    check(x.defined(), "tensor '", name, "' is undefined");
    layout.tensors.push_back({{.name = name, .dtype = x.dtype(), .shape = x.shape()}, x});
  }
  std::sort(layout.tensors.begin(), layout.tensors.end(), [](const auto& a, const auto& b) {
    const int left = ranks[size_t(a.first.dtype)], right = ranks[size_t(b.first.dtype)];
    return left != right ? left > right : a.first.name < b.first.name;
  });
  Checked at = 0;
  for (auto& [entry, x] : layout.tensors) {
    entry.begin = at.value_or(0);
    at += x.nbytes();
    check(at.within(0, INT64_MAX - int64_t(2 * largest_header)), "the tensors have more bytes than a file can hold");
    entry.end = at.value_or(0);
  }
  const std::string text = header_text(layout, metadata);
  check(text.size() <= largest_header, "the header would have ", text.size(), " bytes, more than the format allows");
  layout.header = little_endian_64(text.size()) + text;
  layout.bytes = at.value_or(0) + int64_t(layout.header.size());
  return layout;
}

}  // namespace volta::io

namespace volta {

void write_safetensors(const std::string& path, const StateDict& state, const Metadata& metadata) {
  const char* const op = "write_safetensors";
  const io::SafetensorsLayout layout = io::lay_out_safetensors({op, path}, state, metadata);
  io::FileContext{op, path}.about([&] {
    io::AtomicFile file(op, path);
    file.reserve(layout.bytes);
    file.write(layout.header);
    for (const auto& [entry, x] : layout.tensors) file.write(io::HostBytes(x).bytes);
    file.commit();
  });
}

}  // namespace volta
