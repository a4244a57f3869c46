// PyTorch's files: equal to PyTorch's own, and nothing but what is allowed is read.
#include "io/torch_file.h"

#include "core/impl.h"
#include "io/pickle.h"
#include "io/zip.h"
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";
const io::FileContext context{"read", "file.bin"};
using namespace std::string_literals;
using Kind = TorchValue::Kind;

TorchValue unpickled(const std::string& text) {
  return io::unpickle(context, io::as_bytes(text), [](const io::PickledTensor&) { return ones({1}); });
}
std::string refusal(const std::string& text) {
  return error_of([&] { return unpickled(text); });
}

TEST(IoTorch, ReadsEveryDtype) {
  const StateDict state = read_torch(data + "dtypes.pt");
  EXPECT_EQ(state.size(), 39u);
  for (const DType dtype : all_dtypes) {
    const std::string key(name(dtype));
    EXPECT_TRUE(same(state.at(key + ".full"), known_values({2, 3}, dtype))) << key;
    EXPECT_TRUE(same(state.at(key + ".scalar"), known_values({}, dtype))) << key;
    EXPECT_TRUE(same(state.at(key + ".empty"), known_values({0, 4}, dtype))) << key;
  }
}

TEST(IoTorch, ReadsNestedValues) {
  for (const char* file : {"nested.pt", "nested_protocol4.pt"}) {
    const TorchValue v = read_torch_value(data + file);
    EXPECT_EQ(v.at("epoch").as_integer(), 3);
    EXPECT_EQ(v.at("big").as_integer(), int64_t(1) << 40);
    EXPECT_EQ(v.at("negative").as_integer(), -5);
    EXPECT_EQ(v.at("lr").as_number(), 0.1);
    EXPECT_EQ(v.at("name").as_string(), "größe");
    EXPECT_TRUE(v.at("none").is(Kind::none));
    EXPECT_TRUE(v.at("flags").items()[0].as_boolean());
    EXPECT_FALSE(v.at("flags").items()[1].as_boolean());
    EXPECT_TRUE(v.at("betas").is(Kind::tuple));
    EXPECT_EQ(v.at("betas").items()[1].as_number(), 0.999);
    EXPECT_EQ(v.at("size").items()[1].as_integer(), 3);
    EXPECT_TRUE(same(v.at("parameter").as_tensor(), known_values({2}, f32)));
    EXPECT_EQ(v.at("by_number").at(7).as_string(), "b");
    EXPECT_TRUE(same(v.at("expanded").as_tensor().contiguous(), full({3, 2}, 7.f)));
    EXPECT_EQ(v.at("expanded").as_tensor().stride(0), 0);
    const StateDict model = v.at("model").state_dict();
    EXPECT_EQ(model.names()[0], "0.weight");
    EXPECT_EQ(model.at("1.num_batches_tracked").dtype(), i64);
    const auto& shared = v.at("shared").items();
    const Tensor base = shared[0].as_tensor();
    EXPECT_TRUE(same(base, known_values({4, 6}, f32)));
    EXPECT_TRUE(same(shared[1].as_tensor().contiguous(), base.t().contiguous()));
    EXPECT_TRUE(same(shared[2].as_tensor().contiguous(), base.slice(0, 1, 3).slice(1, 0, 6, 2).contiguous()));
    EXPECT_TRUE(shared[1].as_tensor().shares_storage(base) && shared[2].as_tensor().shares_storage(base));
    EXPECT_FALSE(v.contains("absent"));
    expect_in("no key 'absent'", error_of([&] { return v.at("absent"); }));
    expect_in("a int, not a str", error_of([&] { return v.at("epoch").as_string(); }));
    expect_in("epoch (int)", error_of([&] { return v.state_dict(); }));
  }
}

// Views that differ from their storage in sign say so in a dictionary behind the other arguments.
TEST(IoTorch, NegatedViews) {
  const StateDict state = read_torch(data + "negated.pt");
  EXPECT_TRUE(same(state.at("imag"), tensor({-2.f, -4.f})));
  EXPECT_TRUE(same(state.at("view"), full({3}, -1.f)));
  EXPECT_TRUE(same(state.at("whole"), tensor({0, -1, -2})));
  EXPECT_TRUE(same(state.at("plain"), ones({2})));
  const auto marked = [](const std::string& notes) {
    return "\x80\x02"
           "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
           "0X\3\0\0\0cpuK\1tQK\0K\1\x85K\1\x85\x89}"s +
           notes + "tR."s;
  };
  EXPECT_TRUE(same(unpickled(marked("}X\4\0\0\0conj\x89s"s)).as_tensor(), ones({1})));
  EXPECT_TRUE(same(unpickled(marked("}X\3\0\0\0neg\x88s"s)).as_tensor(), full({1}, -1.f)));
  EXPECT_TRUE(same(unpickled(marked("}X\3\0\0\0neg\x89s"s)).as_tensor(), ones({1})));
  EXPECT_TRUE(same(unpickled(marked("N")).as_tensor(), ones({1})));
  expect_in("marked as 'conj'", refusal(marked("}X\4\0\0\0conj\x88s"s)));
  expect_in("marked as 'odd'", refusal(marked("}X\3\0\0\0odd\x89s"s)));
  expect_in("marked as 'neg'", refusal(marked("}X\3\0\0\0negK\1s"s)));
}

// As in Python the last value of a key counts, in the place of the first.
TEST(IoTorch, KeysThatStandTwice) {
  const TorchValue v = unpickled("\x80\x02}(X\1\0\0\0aK\1X\1\0\0\0bK\2X\1\0\0\0aK\3K\1K\4\x88K\5u."s);
  ASSERT_EQ(v.entries().size(), 3u);
  EXPECT_EQ(v.entries()[0].first.as_string(), "a");
  EXPECT_EQ(v.at("a").as_integer(), 3);
  EXPECT_EQ(v.at("b").as_integer(), 2);
  EXPECT_EQ(v.at(1).as_integer(), 5);  // 1 == True
  const TorchValue made = TorchValue::dict({{0.1, 1}, {0.1000001, 2}, {0.1, 3}, {TorchValue(), 4}, {TorchValue(), 5}});
  ASSERT_EQ(made.entries().size(), 3u);
  EXPECT_EQ(made.entries()[0].second.as_integer(), 3);
  EXPECT_EQ(made.entries()[2].second.as_integer(), 5);
  const TorchValue pair = TorchValue::tuple({1, 2});
  EXPECT_EQ(TorchValue::dict({{pair, 1}, {pair, 2}}).entries().size(), 2u);  // tuples are not compared
  EXPECT_EQ(TorchValue::dict({{"w", ones({1})}, {"w", zeros({2})}}).state_dict().at("w").numel(), 2);
}

// torch.load(weights_only=True) reads them too: a MultiStepLR keeps its milestones in a Counter.
TEST(IoTorch, CountersAreDictionariesAndSetsLists) {
  const TorchValue v = read_torch_value(data + "counter.pt");
  ASSERT_EQ(v.at("x").entries().size(), 3u);
  EXPECT_EQ(v.at("x").at("a").as_integer(), 2);
  EXPECT_EQ(v.at("x").at("c").as_integer(), 1);
  ASSERT_EQ(v.at("y").items().size(), 1u);
  EXPECT_EQ(v.at("y").items()[0].as_integer(), 2);
  EXPECT_TRUE(v.at(3).entries().empty());
  const TorchValue set = unpickled("\x80\x04\x8f(K\1K\2\x90."s);  // as protocol 4 has it
  ASSERT_EQ(set.items().size(), 2u);
  EXPECT_EQ(set.items()[1].as_integer(), 2);
  expect_in("do not fit", refusal("\x80\x02"
                                  "ccollections\nCounter\nK\1\x85R."s));
  expect_in("do not fit", refusal("\x80\x02"
                                  "cbuiltins\nset\n}\x85R."s));
  expect_in("not a list", refusal("\x80\x04}(K\1\x90."s));
}

TEST(IoTorch, WholeNumbersBeyond64BitsAreRefused) {
  EXPECT_EQ(TorchValue(size_t(7)).as_integer(), 7);
  EXPECT_EQ(TorchValue(uint64_t(INT64_MAX)).as_integer(), INT64_MAX);
  EXPECT_EQ(TorchValue(INT64_MIN).as_integer(), INT64_MIN);
  expect_in("9223372036854775808", error_of([] { return TorchValue(uint64_t(1) << 63); }));
}

// Each begins with the function and the file; what is wrong with a file is of kind io.
TEST(IoTorch, ErrorsNameTheFile) {
  const Scratch dir;
  nn::Linear net(2, 2);
  const auto begins = [&](const char* function, const std::string& file, auto&& f) {
    const auto r = attempt(f);
    ASSERT_FALSE(r) << file;
    EXPECT_TRUE(std::string(r.error().what()).starts_with(std::string(function) + ": " + (dir / file) + ": "))
        << r.error().what();
    EXPECT_EQ(int(r.error().kind()), int(Error::Kind::io)) << r.error().what();
  };
  write_torch(dir / "run.pt", TorchValue::dict({{"epoch", 3}, {"model", state_dict(net)}}));
  write_torch(dir / "list.pt", TorchValue::list({1}));
  for (const char* file : {"run.pt", "list.pt"}) {
    begins("load", file, [&] { return load(net, dir / file); });
    begins("read_torch", file, [&] { return read_torch(dir / file); });
    begins("read_state", file, [&] { return read_state(dir / file); });
  }
  const auto named = [&](auto&& f) { expect_in(dir.path(), error_of(f)); };
  named([&] { return write_safetensors_sharded(dir / "s", {{"x", Tensor()}}), 0; });
  named([&] { return write_safetensors_sharded(dir / "s", {{"x", ones({1})}}, {.max_shard_bytes = 0}), 0; });
  const Tensor wide = zeros({1}).expand({int64_t(1) << 59});
  StateDict many;
  for (const char* name : {"a", "b", "c", "d"}) many.add(name, wide);  // of 2^63 bytes
  named([&] { return write_safetensors(dir / "w", many), 0; });
  named([&] { return write_npz(dir / "w", {{"a", wide}}), 0; });
  named([&] { return write_npy(dir / "w", wide), 0; });
  named([&] { return write_torch(dir / "w", {{"a", wide}}), 0; });
  named([&] { return save_checkpoint(dir / "w", {.model = {{"a", wide}}}), 0; });
  named([&] { return CheckpointFolder(dir / "c", {.keep_last = -1}), 0; });
  named([&] { return CheckpointFolder(dir / "c").save({.step = -1}), 0; });
  EXPECT_FALSE(std::filesystem::exists(dir / "w"));
}

TEST(IoTorch, LoadsIntoAModel) {
  nn::Sequential net(nn::Linear(3, 2), nn::BatchNorm1d(2));
  EXPECT_TRUE(load(net, data + "module.pt").complete());
  EXPECT_TRUE(same(state_dict(net).at("0.weight"), known_values({2, 3}, f32)));
}

TEST(IoTorch, RoundTripsValuesAndSharing) {
  const Scratch dir;
  const TorchValue v = read_torch_value(data + "nested.pt");
  write_torch(dir / "x.pt", v);
  const TorchValue back = read_torch_value(dir / "x.pt");
  EXPECT_EQ(back.at("big").as_integer(), int64_t(1) << 40);
  EXPECT_EQ(back.at("lr").as_number(), 0.1);
  EXPECT_TRUE(back.at("none").is(Kind::none));
  EXPECT_TRUE(back.at("betas").is(Kind::tuple));
  const auto &before = v.at("shared").items(), &after = back.at("shared").items();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same(before[i].as_tensor(), after[i].as_tensor()));
    EXPECT_TRUE(after[i].as_tensor().shares_storage(after[0].as_tensor()));
  }
  const Tensor x = randn({4, 5});
  write_torch(
      dir / "y.pt",
      {{"a", x}, {"b", x}, {"part", randn({1000})[{slice(0, 3)}]}, {"back", x.flip({0})}, {"t", randn({2, 3}).t()}});
  const StateDict state = read_torch(dir / "y.pt");
  EXPECT_TRUE(same(state.at("a"), x) && state.at("b").shares_storage(state.at("a")));
  EXPECT_TRUE(same(state.at("back"), x.flip({0}).contiguous()));
  EXPECT_LT(std::filesystem::file_size(dir / "y.pt"), 4000u);  // not the thousand numbers of which three are wanted
}

// An archive as torch.save makes it, from parts.
TorchValue from_archive(const std::string& pickle, const std::string& storage, const std::string& order) {
  const Scratch dir;
  io::AtomicFile file("write", dir / "x.pt");
  io::ZipWriter zip(file);
  zip.add("x/data.pkl", {io::as_bytes(pickle)});
  zip.add("x/byteorder", {io::as_bytes(order)});
  zip.add("x/data/0", {io::as_bytes(storage)});
  zip.finish();
  file.commit();
  return io::read_torch_value(in_memory(read_file(dir / "x.pt")));
}
std::string pickled(const io::PickledTensor& t) {
  return io::pickle(context, ones({1}), [&](const Tensor&) { return t; });
}

TEST(IoTorch, ByteOrders) {
  const io::PickledTensor ints{"0", 8, i32, Layout::contiguous({2})}, bytes{"0", 8, u8, Layout::contiguous({8})};
  const std::string storage("\0\0\0\1\0\0\1\0", 8);
  EXPECT_EQ(from_archive(pickled(ints), storage, "big").as_tensor().to_vector<int>(), (std::vector{1, 256}));
  EXPECT_EQ(from_archive(pickled(ints), storage, "little").as_tensor().to_vector<int>(),
            (std::vector{1 << 24, 1 << 16}));
  EXPECT_EQ(from_archive(pickled(bytes), storage, "big").as_tensor()[3].item<int>(), 1);
  expect_in("byteorder is 'middle'", error_of([&] { return from_archive(pickled(ints), storage, "middle"); }));
}

TEST(IoTorch, LayoutsOutsideTheirStorage) {
  const std::string storage(24, '\1');
  const auto refused = [&](const Shape& shape, const Shape& strides, int64_t offset, int64_t bytes = 24,
                           DType dtype = f32) {
    const io::PickledTensor t{"0", bytes, dtype, {shape, strides, offset}};
    return error_of([&] { return from_archive(pickled(t), storage, "little"); });
  };
  const int64_t huge = int64_t(1) << 62;
  for (const auto& [shape, strides, offset] : std::vector<Layout>{{{7}, {1}, 0},
                                                                  {{6}, {1}, 1},
                                                                  {{2, 3}, {4, 1}, 0},
                                                                  {{2}, {6}, 0},
                                                                  {{1}, {1}, 6},
                                                                  {{huge}, {1}, 0},
                                                                  {{huge, huge}, {0, 0}, 0},
                                                                  {{2}, {huge}, 0},
                                                                  {{3, 3}, {huge, huge}, 0},
                                                                  {{1}, {1}, huge},
                                                                  {{0}, {1}, 7},
                                                                  {{0, huge, huge}, {1, 1, 1}, 0}})
    expect_in("does not lie within its storage", refused(shape, strides, offset));
  expect_in("impossible layout", refused({2}, {-1}, 3));
  expect_in("impossible layout", refused({-2}, {1}, 0));
  expect_in("impossible layout", refused({2}, {1, 1}, 0));
  expect_in("impossible layout", refused({2}, {1}, -1));
  expect_in("24 bytes instead of 28", refused({7}, {1}, 0, 28));
  expect_in("impossible", refused({1}, {1}, 0, -4));
  EXPECT_TRUE(same(from_archive(pickled({"0", 24, boolean, {{2, 2}, {0, 5}, 3}}), storage, "little").as_tensor(),
                   ones({2, 2}).to(boolean)));
  expect_in("neither 0 nor 1", error_of([&] {
              return from_archive(pickled({"0", 4, boolean, Layout::contiguous({2})}), "abcd", "little");
            }));
  expect_in("storage '1' is missing", error_of([&] {
              return from_archive(pickled({"1", 4, f32, Layout::contiguous({1})}), storage, "little");
            }));
}

TEST(IoTorch, TruncatedAtEveryByte) {
  const Scratch dir;
  write_torch(dir / "x.pt", {{"a", known_values({2, 3}, f32)}});
  const std::string whole = read_file(dir / "x.pt");
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(attempt([&] { return io::read_torch_value(in_memory(whole.substr(0, n))); })) << n;
}

TEST(IoTorch, RefusesByName) {
  const auto refused = [&](const char* file) { return error_of([&] { return read_torch_value(data + file); }); };
  expect_in("'pathlib.PurePosixPath'", refused("refused.pt"));
  expect_in("nothing in a file is executed", refused("refused.pt"));
  expect_in("torch.ComplexFloatStorage", refused("complex.pt"));
  expect_in("before PyTorch 1.6", refused("legacy.pt"));
  expect_in("no data.pkl", refused("stored.npz"));
  expect_in("zip archive", refused("plain.npy"));
  nn::Linear net(2, 2);
  expect_in("before PyTorch 1.6", error_of([&] { return load(net, data + "legacy.pt"); }));
  expect_in("'posix.system'", refusal("\x80\x02"
                                      "cposix\nsystem\nX\x02\x00\x00\x00ls\x85R."s));
  expect_in("'builtins.eval'", refusal("\x80\x04\x8c\x08"
                                       "builtins\x8c\x04"
                                       "eval\x93."));
}

TEST(IoTorch, HostilePickles) {
  const std::string p = "\x80\x02";
  expect_in("ends too early", refusal(p));
  expect_in("ends too early", refusal(p + "X\xff\xff\xff\xff"));
  expect_in("0 values", refusal(p + "."));
  expect_in("2 values", refusal(p + "NN."));
  expect_in("not there", refusal(p + "a."));
  expect_in("not there", refusal(p + "(a."));
  expect_in("no mark", refusal(p + "Nt."));
  expect_in("recalls", refusal(p + "h\x05."));
  expect_in("not a list", refusal(p + "}Na."));
  expect_in("not a dictionary", refusal(p + "]NNs."));
  expect_in("without a value", refusal(p + "}(Nu."));
  expect_in("not a function", refusal(p + "N)R."));
  expect_in("circle", refusal(p + "]q\x01h\x01"
                                  "a."));
  expect_in("64 bits", refusal(p + "\x8a\x09"
                                   "123456789."));
  expect_in("opcode 105", refusal(p + "i."));
  expect_in("not UTF-8", refusal(p + std::string("X\x01\x00\x00\x00\xff.", 7)));
  expect_in("arguments that do not fit", refusal(p + "ctorch._utils\n_rebuild_tensor_v2\n)R."));
  expect_in("not a storage", refusal(p + "NQ."));
  expect_in("as a value", refusal(p + "ctorch\nFloatStorage\n."));
  expect_in("protocol", refusal("\x80\x09N."));
  // A list of ten times a list of ten times a list …
  std::string bomb = p + "]q";
  bomb += '\0';
  for (char level = 1; level < 30; ++level) {
    bomb += "](";
    for (int i = 0; i < 10; ++i) bomb += {'h', char(level - 1)};
    bomb += {'e', 'q', level};
  }
  bomb += "t.";
  bomb.insert(2, "(");
  expect_in("too often", refusal(bomb));
  // Bytes that mean nothing buy no further values: 10^7 of them, from a pickle of 2 MiB.
  std::string padded = p + std::string("X\0\0\x20\0", 5) + std::string(2 << 20, 'a') + "0]q" + '\0';
  for (char level = 1; level < 8; ++level) {
    padded += "0](";
    for (int i = 0; i < 10; ++i) padded += {'h', char(level - 1)};
    padded += {'e', 'q', level};
  }
  expect_in("too often", refusal(padded + "."));
  // A list of pairs that is made into a dictionary again and again.
  std::string copies = p + "NN\x86q" + '\0' + "0](";
  for (int i = 0; i < 60'000; ++i) copies += {'h', '\0'};
  copies += "eq\x01"s + "0ccollections\nOrderedDict\nq\x02"s + "0";
  for (int i = 0; i < 200; ++i) copies += "h\x02h\x01\x85R0"s;
  expect_in("too often", refusal(copies + "N."));
}

}  // namespace
}  // namespace volta
