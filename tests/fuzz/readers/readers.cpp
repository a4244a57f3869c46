#include "readers.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <volta/volta.h>
#ifdef VOLTA_FUZZ_IMAGES
#include <volta/data/image.h>
#endif

#include "io/checkpoint.h"
#include "io/inflate.h"
#include "io/npy.h"
#include "io/pickle.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "io/zip.h"

namespace volta::fuzz {
namespace {

namespace fs = std::filesystem;
using Seeds = std::vector<std::string>;

std::shared_ptr<io::MappedFile> file_of(const std::string& text) {
  const io::Bytes bytes = io::as_bytes(text);
  return io::MappedFile::of_memory("read", "file", {bytes.begin(), bytes.end()});
}

// Touches every byte of every element.
void use(const Tensor& x) {
  const io::HostBytes host(x);
  volatile unsigned sum = 0;
  for (const std::byte b : host.bytes) sum = sum + std::to_integer<unsigned>(b);
}
void use(const StateDict& state) {
  for (const auto& [name, x] : state) use(x);
}
// Elements that are repeated cost no bytes in a file: a tensor of them may be larger than memory.
void use(const TorchValue& value) {
  if (value.is(TorchValue::Kind::tensor) && value.as_tensor().numel() < 1 << 20) use(value.as_tensor());
  if (value.is(TorchValue::Kind::list) || value.is(TorchValue::Kind::tuple))
    for (const TorchValue& item : value.items()) use(item);
  if (value.is(TorchValue::Kind::dict))
    for (const auto& [key, item] : value.entries()) use(item);
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
std::string stored(const std::string& name) { return contents(VOLTA_TEST_DATA "/" + name); }

// What `write` writes to the path it is given.
template <class Write> std::string written(Write&& write) {
  const fs::path path = fs::temp_directory_path() / ("volta_fuzz_seed_" + std::to_string(getpid()));
  write(path.string());
  std::string text = contents(path);
  fs::remove(path);
  return text;
}

Checkpoint small_checkpoint() {
  return {.model = {{"w", arange(3).to(f32)}}, .scheduler = {{"a", 0.1}}, .step = 3, .values = {{"k", "v"}}};
}

std::string pickle_of(const std::string& name) {
  const io::ZipArchive zip(io::MappedFile::open("read", VOLTA_TEST_DATA "/io/" + name));
  for (const io::ZipMember& member : zip.members())
    if (member.name.ends_with("/data.pkl")) return std::string(io::as_text(zip.read(member).bytes()));
  return "";
}
// A checksum lies around what a pickle or the state of a checkpoint holds: these are reached without it.
void read_pickle(const std::string& text) {
  use(io::unpickle({"read", "file"}, io::as_bytes(text),
                   [](const io::PickledTensor& t) { return zeros({}, {.dtype = t.dtype}); }));
}
void read_checkpoint_state(const std::string& text) {
  (void)io::read_checkpoint_state({"read", "file"}, text, {{"model.w", zeros({3})}});
}

// A zero byte divides the two files of a tokenizer.
void read_tokenizer(const std::string& bytes) {
  const size_t middle = std::min(bytes.find('\0'), bytes.size());
  const auto merges = std::string_view(bytes).substr(std::min(middle + 1, bytes.size()));
  const auto t = data::Gpt2Tokenizer::from_text(bytes.substr(0, middle), merges);
  (void)t.decode(t.encode("ab a"));
}

#ifdef VOLTA_FUZZ_IMAGES
template <int min_side> void read_image(const std::string& s) {
  (void)data::decode_image(s, {.min_side = min_side, .max_pixels = 1 << 20});
}
// The bytes themselves choose the part.
void read_part(const std::string& s) {
  const auto number = [&](size_t i) { return s.size() > i ? int64_t(uint8_t(s[s.size() - 1 - i])) : 0; };
  const auto part = [&](int64_t h, int64_t w) {
    const int64_t top = number(3) % h, left = number(4) % w;
    return data::Region{top, left, 1 + number(5) % (h - top), 1 + number(6) % (w - left)};
  };
  (void)data::decode_image(s, {.min_side = number(2) % 16, .max_pixels = 1 << 20, .region = part});
}
template <char... extension> Seeds images() {
  Seeds list;
  constexpr char wanted[] = {'.', extension..., 0};
  for (const auto& entry : fs::directory_iterator(VOLTA_TEST_DATA "/data/images"))
    if (entry.path().extension() == wanted) list.push_back(contents(entry.path()));
  return list;
}
#endif

Seeds zeros_then(const char* head, size_t head_size, size_t n) {
  return {std::string(head, head_size) + std::string(n, 'x')};
}

const std::string wav_head("RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x80\x3e\0\0\0\xfa\0\0\4\0\x10\0data\x8\0\0\0", 44);

std::vector<Reader> all_readers() {
  return {
      {"safetensors", [](const std::string& s) { use(io::read_safetensors(file_of(s))); },
       [] {
         return Seeds{stored("io/dtypes.safetensors"), stored("io/names.safetensors")};
       }},
      {"safetensors_index", [](const std::string& s) { (void)io::parse_safetensors_index(*file_of(s)); },
       [] {
         return Seeds{R"({"metadata":{"total_size":4},"weight_map":{"a":"x.safetensors","b":"y/z.safetensors"}})"};
       }},
      {"npy",
       [](const std::string& s) {
         use(io::read_npy({file_of(s), 0, s.size()}, ""));
       },
       [] {
         return Seeds{stored("io/plain.npy"), stored("io/vector.npy"), stored("io/scalar.npy")};
       }},
      {"npz", [](const std::string& s) { use(io::read_npz(file_of(s))); },
       [] {
         return Seeds{stored("io/stored.npz"), stored("io/deflated.npz")};
       }},
      {"gzip", [](const std::string& s) { (void)io::gunzip(io::as_bytes(s), size_t(1) << 24); },
       [] { return Seeds{stored("io/squares.gz")}; }},
      {"inflate",
       [](const std::string& s) {
         (void)io::inflate({"read", "file"}, io::as_bytes(s), size_t(1) << 24);
       },
       [] {
         const std::string file = stored("io/squares.gz");
         return Seeds{file.substr(file.find('\0', 10) + 1)};  // behind the name it was made of
       }},
      {"torch", [](const std::string& s) { use(io::read_torch_value(file_of(s))); },
       [] {
         const TorchValue some = TorchValue::dict(
             {{"a", arange(4).reshape({2, 2}).to(i16)}, {"b", TorchValue::list({1, 2.5, "text", true})}});
         return Seeds{stored("io/dtypes.pt"), stored("io/nested.pt"), stored("io/optimizer_Adam.pt"),
                      written([&](const std::string& path) { write_torch(path, some); })};
       }},
      {"pickle", read_pickle,
       [] {
         return Seeds{pickle_of("nested.pt"), pickle_of("nested_protocol4.pt"), pickle_of("optimizer_LBFGS.pt")};
       }},
      {"checkpoint", [](const std::string& s) { use(io::read_checkpoint(file_of(s)).model); },
       [] { return Seeds{written([](const std::string& path) { save_checkpoint(path, small_checkpoint()); })}; }},
      {"checkpoint_state", read_checkpoint_state,
       [] {
         Seeds list;
         written([&](const std::string& path) {
           save_checkpoint(path, small_checkpoint());
           list.push_back(read_safetensors_metadata(path).at("state"));
         });
         return list;
       }},
      {"idx", [](const std::string& s) { (void)data::parse_idx(s); },
       [] { return zeros_then("\0\0\x0d\2\0\0\0\2\0\0\0\3", 12, 24); }},
      {"csv", [](const std::string& s) { (void)data::parse_csv(s); },
       [] {
         return Seeds{"a,b,c\r\n1,\"x \"\"y\"\"\",2.5\n2,,NA\n", "a\n1e3\n-7\n"};
       }},
      {"tsv", [](const std::string& s) { (void)data::parse_csv(s, {.delimiter = '\t', .header = false}); },
       [] { return Seeds{"1\t2\n3\t4\n"}; }},
      {"wav", [](const std::string& s) { (void)data::parse_wav(s); },
       [] { return zeros_then(wav_head.data(), wav_head.size(), 8); }},
      {"cifar", [](const std::string& s) { (void)data::parse_cifar(s, 1, 0, 10); },
       [] { return zeros_then("\1", 1, 3072); }},
      {"tokenizer", read_tokenizer,
       [] {
         return Seeds{std::string("{\"a\": 0, \"b\": 1, \"ab\": 2, \"\\u0120\": 3, \"\\u0120a\": 4}") + '\0' +
                      "#version: 0.2\na b\n"};
       }},
      {"text", [](const std::string& s) { (void)data::CharTokenizer(s).encode(s); },
       [] { return Seeds{"naïve 数字 and plain"}; }},
#ifdef VOLTA_FUZZ_IMAGES
      {"jpeg", read_image<0>, images<'j', 'p', 'g'>},
      {"jpeg_reduced", read_image<8>, images<'j', 'p', 'g'>},
      {"jpeg_part", read_part, images<'j', 'p', 'g'>},
      {"png", read_image<0>, images<'p', 'n', 'g'>},
      {"bmp", read_image<0>, images<'b', 'm', 'p'>},
      {"ppm", read_image<0>, images<'p', 'p', 'm'>},
#endif
  };
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> list = all_readers();
  return list;
}

}  // namespace volta::fuzz
