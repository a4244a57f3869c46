// Safetensors: equal to the format's own library in both directions, and every rule about bad files.
#include "io/safetensors.h"

#include <csignal>
#include <thread>

#include <sys/resource.h>

#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";

std::string file_of(const std::string& header, const std::string& content) {
  return io::little_endian_64(header.size()) + header + content;
}
std::string refusal(const std::string& header, const std::string& content) {
  return error_of([&] { return io::read_safetensors(in_memory(file_of(header, content))); });
}
StateDict sample() {
  StateDict state;
  for (const DType dtype : all_dtypes) {
    state.add(std::string(name(dtype)) + ".full", known_values({2, 3}, dtype));
    state.add(std::string(name(dtype)) + ".scalar", known_values({}, dtype));
    state.add(std::string(name(dtype)) + ".empty", known_values({0, 4}, dtype));
  }
  return state;
}

TEST(IoSafetensors, ReadsWhatTheLibraryWrote) {
  const StateDict state = read_safetensors(data + "dtypes.safetensors");
  const StateDict wanted = sample();
  EXPECT_EQ(state.size(), wanted.size());
  for (const auto& [name, x] : wanted) EXPECT_TRUE(same(state.at(name), x)) << name;
  EXPECT_EQ(read_safetensors_metadata(data + "dtypes.safetensors").at("format"), "pt");
  const StateDict names = read_safetensors(data + "names.safetensors");
  EXPECT_EQ(names.at("größe \"x\"\n").item<float>(), 1);
  EXPECT_EQ(names.at("日本").item<int64_t>(), 2);
}

TEST(IoSafetensors, WritesTheLibrarysBytes) {
  const Scratch dir;
  write_safetensors(dir / "x", sample(), {{"format", "pt"}});
  EXPECT_EQ(read_file(dir / "x"), read_file(data + "dtypes.safetensors"));
  write_safetensors(dir / "y", read_safetensors(data + "names.safetensors"));
  EXPECT_EQ(read_file(dir / "y"), read_file(data + "names.safetensors"));
  EXPECT_EQ(dir.files(), 2u);
}

TEST(IoSafetensors, NonContiguousAndEmptyStates) {
  const Scratch dir;
  const Tensor x = randn({4, 6});
  write_safetensors(dir / "x",
                    {{"t", x.t()}, {"s", x.slice(1, 1, 6, 2)}, {"f", x.flip({0})}, {"e", x[0].expand({3, 6})}});
  const StateDict back = read_safetensors(dir / "x");
  EXPECT_TRUE(same(back.at("t"), x.t().contiguous()));
  EXPECT_TRUE(same(back.at("s"), x.slice(1, 1, 6, 2).contiguous()));
  EXPECT_TRUE(same(back.at("f"), x.flip({0}).contiguous()));
  EXPECT_TRUE(same(back.at("e"), x[0].expand({3, 6}).contiguous()));
  write_safetensors(dir / "none", {});
  EXPECT_TRUE(read_safetensors(dir / "none").empty());
}

TEST(IoSafetensors, TensorsLiveInTheFileAndMayBeChanged) {
  const Scratch dir;
  write_safetensors(dir / "x", {{"a", ones({1000})}, {"b", zeros({1000})}});
  const std::string before = read_file(dir / "x");
  const int64_t in_use = memory::stats().in_use;
  StateDict state = read_safetensors(dir / "x");
  EXPECT_LT(memory::stats().in_use - in_use, 2000);  // handles alone
  state.at("a").add_(1);
  EXPECT_EQ(state.at("a").sum().item<float>(), 2000);
  EXPECT_EQ(read_file(dir / "x"), before);
  EXPECT_EQ(read_safetensors(dir / "x").at("a").sum().item<float>(), 1000);
  EXPECT_EQ(state.at("b").version(), 0u);  // each has its own history
  // The file may be replaced while they live.
  write_safetensors(dir / "x", {{"a", zeros({3})}});
  EXPECT_EQ(state.at("a").sum().item<float>(), 2000);
  EXPECT_EQ(state.at("b").sum().item<float>(), 0);
}

TEST(IoSafetensors, UnalignedDataAreCopied) {
  const std::string header = R"({"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                             R"("x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  const float value = 2.5;
  const StateDict state =
      io::read_safetensors(in_memory(file_of(header, "\1" + std::string(reinterpret_cast<const char*>(&value), 4))));
  EXPECT_EQ(state.at("x").item<float>(), 2.5);
  EXPECT_TRUE(state.at("b").item<bool>());
}

TEST(IoSafetensors, InfoLoadsNothing) {
  const SafetensorsInfo info = read_safetensors_info(data + "dtypes.safetensors");
  EXPECT_EQ(info.tensors.size(), 39u);
  EXPECT_EQ(info.metadata.at("format"), "pt");
  EXPECT_EQ(info.tensors[0].name, "u64.empty");
  EXPECT_EQ(info.tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(info.tensors[1].bytes, 48);
}

TEST(IoSafetensors, BadHeadersAreNamed) {
  const std::string x = R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", eight(8, '\0');
  expect_in("read: file.bin: ", refusal("{" + x + "}", "1234"));
  expect_in("tensor 'x'", refusal("{" + x + "}", "1234"));
  expect_in("truncated", refusal("{" + x + "}", "1234"));
  expect_in("4 bytes follow the last tensor", refusal("{" + x + "}", eight + "1234"));
  expect_in("stands twice", refusal("{" + x + "," + x + "}", eight));
  expect_in("overlap", refusal("{" + x + R"(,"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight));
  expect_in("behind a gap", refusal(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight));
  expect_in("does not take", refusal(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight));
  expect_in("data_offsets 8 to 0", refusal(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight));
  expect_in("dtype 'F99' is unknown", refusal(R"({"x":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", eight));
  expect_in("convert it to F16", refusal(R"({"x":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", eight));
  expect_in("convert it to F16", refusal(R"({"x":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", eight));
  expect_in("negative", refusal(R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight));
  expect_in("64 bits", refusal(R"({"x":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})", eight));
  expect_in("64 bits", refusal(R"({"x":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", eight));
  expect_in("axes",
            refusal(R"({"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]}})", eight));
  expect_in("unknown field 'size'",
            refusal(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"size":1}})", eight));
  expect_in("lacks", refusal(R"({"x":{"dtype":"F32","shape":[2]}})", eight));
  expect_in("lacks", refusal(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", eight));
  expect_in("more than two", refusal(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", eight));
  expect_in("does not begin with '{'", refusal("[1]     ", ""));
  expect_in("follows after the end", refusal("{}}", ""));
  expect_in("a string is missing", refusal(R"({"__metadata__":{"a":1}})", ""));
  expect_in("an object is missing", refusal("{\"x\":" + std::string(100, '['), ""));
  expect_in("not valid UTF-8", refusal("{\"\xff\":1}", ""));
  expect_in("neither 0 nor 1",
            refusal(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", std::string("\0\2", 2)));
}

TEST(IoSafetensors, ExtremeSizes) {
  for (const char* size : {"4611686018427387904", "9223372036854775807", "2305843009213693952"}) {
    const std::string one(size), two = std::string(size).append(",").append(size);
    const auto refused = [](const std::string& shape, const std::string& offsets) {
      std::string header = R"({"x":{"dtype":"F64","shape":[)" + shape;
      return refusal(header.append(R"(],"data_offsets":[)").append(offsets).append("]}}"), "");
    };
    for (const std::string& shape : {one, two, "0," + two}) expect_in("tensor 'x'", refused(shape, "0,0"));
    expect_in("tensor 'x'", refused("1", two));
  }
  for (const uint64_t length : {uint64_t(100'000'001), uint64_t(1) << 62, ~uint64_t(0), ~uint64_t(0) - 7})
    expect_in("not a safetensors file",
              error_of([&] { return io::read_safetensors(in_memory(io::little_endian_64(length) + "{}")); }));
}

TEST(IoSafetensors, TruncatedAtEveryByte) {
  const std::string whole = read_file(data + "dtypes.safetensors");
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(attempt([&] { return io::read_safetensors(in_memory(whole.substr(0, n))); })) << n;
  EXPECT_FALSE(attempt([&] { return io::read_safetensors(in_memory(whole + "x")); }));
}

TEST(IoSafetensors, PlacesThatHoldNoFile) {
  const Scratch dir;
  expect_in("no such file", error_of([&] { return read_safetensors(dir / "absent"); }));
  expect_in("neither model.safetensors.index.json nor", error_of([&] { return read_safetensors(dir.path()); }));
  expect_in("regular", error_of([&] { return read_safetensors("/dev/null"); }));
  write_file(dir / "empty", "");
  expect_in("0 bytes", error_of([&] { return read_safetensors(dir / "empty"); }));
  const StateDict state{{"x", ones({2})}};
  expect_in("this is a folder", error_of([&] { return write_safetensors(dir.path(), state), 0; }));
  expect_in("no folder", error_of([&] { return write_safetensors(dir / "a/b", state), 0; }));
  expect_in("regular", error_of([&] { return write_safetensors("/dev/null", state), 0; }));
  expect_in("undefined", error_of([&] { return write_safetensors(dir / "u", {{"x", Tensor()}}), 0; }));
  expect_in("__metadata__", error_of([&] { return write_safetensors(dir / "u", {{"__metadata__", ones({1})}}), 0; }));
  expect_in("UTF-8", error_of([&] { return write_safetensors(dir / "u", {{"\xff", ones({1})}}), 0; }));
  EXPECT_EQ(dir.files(), 1u);
}

TEST(IoSafetensors, AFullDiskLeavesTheFileThatWasThere) {
  const Scratch dir;
  write_safetensors(dir / "x", {{"a", ones({10})}});
  const std::string before = read_file(dir / "x");
  rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{100'000, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const auto result = attempt([&] { write_safetensors(dir / "x", {{"a", ones({100'000})}}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), Error::Kind::io);
  expect_in(dir / "x", result.error().what());
  EXPECT_EQ(read_file(dir / "x"), before);
  EXPECT_EQ(dir.files(), 1u);
}

TEST(IoSafetensors, KeepsLinksAndPermissions) {
  const Scratch dir;
  write_safetensors(dir / "real", {{"a", ones({10})}});
  std::filesystem::permissions(dir / "real", std::filesystem::perms(0640));
  std::filesystem::create_symlink("real", dir / "link");
  write_safetensors(dir / "link", {{"a", zeros({10})}});
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(read_safetensors(dir / "real").at("a").sum().item<float>(), 0);
  EXPECT_EQ(std::filesystem::status(dir / "real").permissions(), std::filesystem::perms(0640));
  // Links to links, to what is not there yet.
  std::filesystem::create_directory(dir / "sub");
  std::filesystem::create_symlink("sub/second", dir / "first");
  std::filesystem::create_symlink("../new", dir / "sub/second");
  write_safetensors(dir / "first", {{"a", ones({10})}});
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "first") && std::filesystem::is_symlink(dir / "sub/second"));
  EXPECT_EQ(read_safetensors(dir / "new").size(), 1u);
  std::filesystem::create_symlink("none/new", dir / "lost");
  expect_in("no folder", error_of([&] { return write_safetensors(dir / "lost", {{"a", ones({1})}}), 0; }));
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "lost"));
}

TEST(IoSafetensors, Shards) {
  const Scratch dir;
  StateDict state;
  for (int i = 0; i < 10; ++i) state.add("layer." + std::to_string(i), full({100}, i));
  write_safetensors_sharded(dir.path(), state, {.max_shard_bytes = 2000, .metadata = {{"format", "pt"}}});
  EXPECT_EQ(dir.files(), 6u);
  for (const std::string& path : {dir.path(), dir / "model.safetensors.index.json"}) {
    const StateDict back = read_safetensors(path);
    EXPECT_EQ(back.size(), 10u);
    for (const auto& [name, x] : state) EXPECT_TRUE(same(back.at(name), x));
    EXPECT_EQ(read_safetensors_info(path).tensors.size(), 10u);
    EXPECT_EQ(read_safetensors_metadata(path).at("format"), "pt");
  }
  write_safetensors_sharded(dir.path(), {{"x", ones({3})}}, {.max_shard_bytes = 1});  // replaces them
  EXPECT_EQ(dir.files(), 2u);
  EXPECT_EQ(read_safetensors(dir.path()).size(), 1u);
  write_safetensors_sharded(dir / "new", {});
  EXPECT_TRUE(read_safetensors(dir / "new").empty());
  EXPECT_FALSE(attempt([&] { write_safetensors_sharded(dir / "new", state, {.max_shard_bytes = 0}); }));
}

// An index is a text that anyone may write: files that it names are not all shards.
TEST(IoSafetensors, OnlyShardsAreReplaced) {
  const Scratch dir;
  const std::vector<std::string> others = {"thesis.txt", "other.safetensors", "model-00001-of-00009.safetensors"};
  std::string map;
  for (const std::string& name : others) {
    write_file(dir / name, "my work");
    map.append(map.empty() ? "\"" : ",\"").append(name).append("\":\"").append(name).append("\"");
  }
  write_file(dir / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  write_safetensors_sharded(dir.path(), {{"a", zeros({1})}});
  for (const std::string& name : others) EXPECT_EQ(read_file(dir / name), "my work");
}

TEST(IoSafetensors, ShardsThatFailLeaveNothing) {
  const Scratch dir;
  const StateDict good{{"a", ones({100})}};
  write_safetensors_sharded(dir.path(), good);
  const size_t files = dir.files();
  const StateDict bad{{"a", zeros({100})}, {"b", ones({100})}, {"\xff", ones({100})}};
  EXPECT_NE(error_of([&] { return write_safetensors_sharded(dir.path(), bad, {.max_shard_bytes = 400}), 0; }), "");
  EXPECT_EQ(dir.files(), files);
  EXPECT_TRUE(same(read_safetensors(dir.path()).at("a"), ones({100})));
}

TEST(IoSafetensors, IndicesThatLie) {
  const Scratch dir;
  const std::string index = dir / "model.safetensors.index.json";
  write_safetensors(dir / "a.safetensors", {{"x", ones({1})}});
  const auto refused = [&](const std::string& map) {
    write_file(index, "{\"metadata\":{\"total_size\":4},\"weight_map\":" + map + "}");
    return error_of([&] { return read_safetensors(index); });
  };
  for (const char* shard : {"../a.safetensors", "/etc/passwd", "b/../../a", "", "a\\u0000b"})
    expect_in("outside the folder", refused("{\"x\":\"" + std::string(shard) + "\"}"));
  expect_in("no such file", refused(R"({"x":"b.safetensors"})"));
  expect_in("'y' is not in its shard", refused(R"({"x":"a.safetensors","y":"a.safetensors"})"));
  expect_in("does not place there", refused(R"({"y":"a.safetensors"})"));
  expect_in("a string is missing", refused(R"({"x":3})"));
  expect_in("stands twice", refused(R"({"x":"a.safetensors","x":"a.safetensors"})"));
  write_file(index, "{}");
  expect_in("no weight_map", error_of([&] { return read_safetensors(index); }));
}

TEST(IoSafetensors, WrittenWhileOthersRead) {
  const Scratch dir;
  const nn::Linear net(64, 64);
  const Tensor x = randn({8, 64}), wanted = net(x);
  std::vector<std::thread> readers;
  std::atomic<bool> wrong = false;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      const NoGrad off;
      for (int n = 0; n < 20; ++n) wrong = wrong || !equal(net(x), wanted);
    });
  for (int n = 0; n < 5; ++n) save(net, dir / "net");
  for (std::thread& t : readers) t.join();
  EXPECT_FALSE(wrong);
  EXPECT_TRUE(same(read_safetensors(dir / "net").at("weight"), net.weight.detach()));
}

struct Tied {
  nn::Embedding in{5, 4};
  nn::Linear out{4, 5, {.bias = false}};
};

TEST(IoSave, TiedWeightsRoundTrip) {
  const Scratch dir;
  Tied net, other;
  nn::tie(net.out.weight, net.in.weight);
  nn::tie(other.out.weight, other.in.weight);
  save(net, dir / "net");
  EXPECT_EQ(read_safetensors(dir / "net").size(), 2u);
  EXPECT_TRUE(load(other, dir / "net").complete());
  EXPECT_TRUE(same(other.in.weight.detach(), net.in.weight.detach()));
  EXPECT_TRUE(other.out.weight.shares_storage(other.in.weight));
  write_safetensors(dir / "one", {{"in.weight", full({5, 4}, 3.f)}});  // as others leave the second out
  EXPECT_TRUE(load(other, dir / "one").complete());
  EXPECT_EQ(other.out.weight.sum().item<float>(), 60);
}

TEST(IoSave, ErrorsNameTheFileAndEveryDifference) {
  const Scratch dir;
  nn::Linear net(3, 2), other(4, 2);
  save(net, dir / "net");
  const std::string text = error_of([&] { return load(other, dir / "net"); });
  expect_in("load: " + (dir / "net"), text);
  expect_in("weight (the model's [2, 4], the state's [2, 3])", text);
  const LoadResult result = load(other, dir / "net", {.strict = false});
  EXPECT_EQ(result.mismatched.size(), 1u);
  EXPECT_TRUE(same(other.bias.detach(), net.bias.detach()));
  expect_in("no such file", error_of([&] { return load(other, dir / "absent"); }));
  write_file(dir / "text", "hello, this is no file of weights");
  expect_in("not a safetensors file", error_of([&] { return load(other, dir / "text"); }));
  write_file(dir / "empty", "");
  expect_in("empty", error_of([&] { return load(other, dir / "empty"); }));
}

TEST(IoSave, TheContentSaysWhichReader) {
  const Scratch dir;
  const nn::Linear net(3, 2);
  nn::Linear other(3, 2);
  const StateDict state = state_dict(net);
  write_torch(dir / "a", state);
  write_npz(dir / "b", state);
  write_safetensors(dir / "c", state);
  write_safetensors_sharded(dir / "d", state);
  for (const char* name : {"a", "b", "c", "d"}) {
    nn::init::zeros_(other.weight);
    EXPECT_TRUE(load(other, dir / name).complete());
    EXPECT_TRUE(same(other.weight.detach(), net.weight.detach())) << name;
    EXPECT_EQ(read_state(dir / name).size(), 2u);
  }
  write_npy(dir / "e", ones({2}));
  expect_in("read_npy", error_of([&] { return load(other, dir / "e"); }));
}

// As the Hub's libraries wrote them before safetensors.
TEST(IoSave, FoldersOfPytorchFiles) {
  const Scratch dir;
  const nn::Linear net(3, 2);
  nn::Linear other(3, 2);
  expect_in("pytorch_model.bin", error_of([&] { return read_state(dir.path()); }));
  write_torch(dir / "pytorch_model.bin", state_dict(net));
  EXPECT_TRUE(load(other, dir.path()).complete());
  EXPECT_TRUE(same(other.weight.detach(), net.weight.detach()));

  const std::string index = dir / "pytorch_model.bin.index.json";
  const auto place = [&](const std::string& map) { write_file(index, "{\"metadata\":{},\"weight_map\":" + map + "}"); };
  write_torch(dir / "a.bin", StateDict{{"weight", ones({2, 3})}});
  write_safetensors(dir / "b.bin", {{"bias", ones({2})}});  // each is read by its content
  place(R"({"weight":"a.bin","bias":"b.bin"})");
  for (const std::string& path : {dir.path(), index}) {
    nn::init::zeros_(other.weight);
    EXPECT_TRUE(load(other, path).complete());
    EXPECT_TRUE(same(other.weight.detach(), ones({2, 3})));
    EXPECT_EQ(read_state(path).names(), (std::vector<std::string>{"weight", "bias"}));
  }
  const auto refused = [&](const std::string& map) {
    place(map);
    return error_of([&] { return read_state(dir.path()); });
  };
  expect_in("outside the folder", refused(R"({"weight":"../a.bin"})"));
  expect_in("no such file", refused(R"({"weight":"c.bin"})"));
  expect_in("does not place there", refused(R"({"bias":"a.bin"})"));
  expect_in("'weight' is not in its shard", refused(R"({"weight":"b.bin","bias":"b.bin"})"));
  expect_in("'x' is not in its shard", refused(R"({"weight":"a.bin","x":"a.bin"})"));
  EXPECT_NE(refused(R"({"weight":"pytorch_model.bin.index.json"})"), "");
  write_safetensors(dir / "model.safetensors", {{"x", ones({1})}});  // comes first
  EXPECT_EQ(read_state(dir.path()).names(), (std::vector<std::string>{"x"}));
}

}  // namespace
}  // namespace volta
