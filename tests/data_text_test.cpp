// Tokenizers and blocks of text.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "data/unicode.h"
#include "data_common.h"
#include "taken.h"

using namespace volta;
using namespace volta::test;

namespace {

const std::string folder = VOLTA_TEST_DATA "/data/";

std::string from_hex(const std::string& hex) {
  std::string text;
  if (hex != "-")
    for (size_t i = 0; i < hex.size(); i += 2) text += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return text;
}
std::vector<int64_t> numbers(const std::string& list) {
  std::vector<int64_t> ids;
  std::istringstream in(list == "-" ? "" : list);
  for (std::string one; std::getline(in, one, ',');) ids.push_back(std::stoll(one));
  return ids;
}
data::Gpt2Tokenizer tokenizer(const data::Gpt2Options& options = {}) {
  return data::Gpt2Tokenizer(folder + "vocab.json", folder + "merges.txt", options);
}

}  // namespace

TEST(DataText, Gpt2EqualsTokenizers) {
  const auto plain = tokenizer(), spaced = tokenizer({.add_prefix_space = true});
  std::ifstream in(folder + "tokens.txt");
  int cases = 0;
  for (std::string kind, a, b; in >> kind >> a >> b; ++cases) {
    if (kind == "decode") {
      EXPECT_EQ(plain.decode(numbers(a)), from_hex(b)) << a;
      continue;
    }
    EXPECT_EQ((kind == "prefix" ? spaced : plain).encode(from_hex(a)), numbers(b)) << kind << " " << from_hex(a);
    EXPECT_EQ(plain.decode(plain.encode(from_hex(a))), from_hex(a));
  }
  EXPECT_EQ(cases, 24 + 120 + 24 + 60);
}

TEST(DataText, Gpt2SpecialTokens) {
  const auto t = tokenizer({.special_tokens = {"<|endoftext|>"}});
  const int64_t end = t.token_to_id("<|endoftext|>");
  ASSERT_GE(end, 0);
  const auto ids = t.encode("one<|endoftext|><|endoftext|>two");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 2);
  EXPECT_EQ(t.decode(ids), "one<|endoftext|><|endoftext|>two");
  EXPECT_EQ(t.token_to_id("no such token"), -1);
  refused([] { tokenizer({.special_tokens = {"<|no|>"}}); }, Error::Kind::argument);
  refused([] { tokenizer({.special_tokens = {""}}); }, Error::Kind::argument);
}

// One that does not come is looked for once, not behind each of the others.
TEST(DataText, Gpt2ManySpecialTokensTakeNoTime) {
  const std::string vocab = R"({"a":0,"b":1,"<|e|>":2,"<|e|>>":3,"<|p|>":4})";
  const auto t = data::Gpt2Tokenizer::from_text(vocab, "", {.special_tokens = {"<|e|>", "<|p|>", "<|e|>>"}});
  EXPECT_EQ(t.encode("<|e|>a<|e|>><|p|>b<|e|>"), (std::vector<int64_t>{2, 0, 3, 4, 1, 2}));
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "abababab<|e|>";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(t.encode(text).size(), 1'800'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(DataText, Gpt2TakesAnyBytes) {
  const auto t = tokenizer();
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += char(i);
  bytes += bytes;
  EXPECT_EQ(t.decode_bytes(t.encode(bytes)), bytes);
  EXPECT_EQ(t.decode_bytes(t.encode(bytes + "\xf0\x9f")), bytes + "\xf0\x9f");
}

TEST(DataText, Gpt2LongWordsTakeNoTime) {
  const auto t = tokenizer();
  const std::string word(1 << 18, 'e'), spaces(1 << 18, ' ');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(t.decode(t.encode(word)), word);
  EXPECT_EQ(t.decode(t.encode(spaces)), spaces);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(DataText, Gpt2FromManyThreads) {
  const auto t = tokenizer();
  const auto expected = t.encode("The quick brown fox");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) EXPECT_EQ(t.encode("The quick brown fox"), expected);
    });
  for (auto& thread : threads) thread.join();
}

TEST(DataText, Gpt2BadFiles) {
  using T = data::Gpt2Tokenizer;
  refused([] { T("/nowhere/vocab.json", folder + "merges.txt"); });
  EXPECT_TRUE(contains(refused([] { T(folder + "merges.txt", folder + "merges.txt"); }), "merges.txt"));
  for (const char* vocab : {"", "[]", "{", "{\"a\": 1", "{\"a\": -1}", "{\"a\": 1.5}", "{\"a\": {}}", "{\"a\": [1]}",
                            "{\"a\": \"b\"}", "{\"a\": null}", "7", "{\"a\": 99999999999}", "{\"a\": 1, \"a\": 2}",
                            "{\"a\": 1, \"b\": 1}", "{\"a\": 1} x", "{\"a\xff\": 1}"})
    refused([&] { T::from_text(vocab, ""); });
  refused([&] { T::from_text(std::string(200000, '['), ""); });
  const char* vocab = "{\"a\": 0, \"b\": 1, \"ab\": 2}";
  EXPECT_EQ(T::from_text(vocab, "#version: 0.2\r\na b\r\n\n").encode("abab"), (std::vector<int64_t>{2, 2}));
  for (const char* merges : {"a", "a ", " b", "a b c", "a  b", "a c", "b a"})
    EXPECT_TRUE(contains(refused([&] { T::from_text(vocab, merges); }), "line 1")) << merges;
  refused([&] { (void)T::from_text(vocab, "").encode("c"); }, Error::Kind::argument);
  refused([&] { (void)T::from_text(vocab, "").decode(std::vector<int64_t>{3}); }, Error::Kind::index);
  refused([&] { (void)T::from_text(vocab, "").decode(std::vector<int64_t>{-1}); }, Error::Kind::index);
}

TEST(DataText, MovedFromTokenizersAreRefused) {
  auto t = data::Gpt2Tokenizer::from_text("{\"a\": 0}", "");
  const auto taken = volta::test::taken(t);
  EXPECT_EQ(taken.vocab_size(), 1);
  refused([&] { (void)t.vocab_size(); }, Error::Kind::argument);
  refused([&] { (void)t.encode("a"); }, Error::Kind::argument);
  refused([&] { (void)t.decode(std::vector<int64_t>{0}); }, Error::Kind::argument);
  refused([&] { (void)t.token_to_id("a"); }, Error::Kind::argument);
}

TEST(DataText, CharactersAndBytes) {
  const data::CharTokenizer t("hello wörld");
  EXPECT_EQ(t.vocab_size(), 9);
  EXPECT_EQ(t.characters().back(), "ö");
  EXPECT_EQ(t.decode(t.encode("lörd")), "lörd");
  EXPECT_TRUE(contains(refused([&] { (void)t.encode("x"); }, Error::Kind::argument), "'x'"));
  refused([&] { (void)t.decode(std::vector<int64_t>{9}); }, Error::Kind::index);
  EXPECT_EQ(data::CharTokenizer("").vocab_size(), 0);
  EXPECT_EQ(data::CharTokenizer("\xff\xfe\xff").vocab_size(), 2);
  const data::ByteTokenizer b;
  EXPECT_EQ(b.encode("a\xff"), (std::vector<int64_t>{97, 255}));
  EXPECT_EQ(b.decode(b.encode("wörld")), "wörld");
  refused([&] { (void)b.decode(std::vector<int64_t>{256}); }, Error::Kind::index);
}

TEST(DataText, Blocks) {
  const auto set = data::text_blocks(arange(11), 3);
  EXPECT_EQ(set.size(), 3);
  const auto [x, y] = set.get(2);
  EXPECT_TRUE(equal(x, tensor({6, 7, 8})) && equal(y, tensor({7, 8, 9})));
  EXPECT_EQ(data::text_blocks(arange(11), 3, {.stride = 1}).size(), 8);
  EXPECT_EQ(data::text_blocks(arange(3), 3).size(), 0);
  EXPECT_EQ(data::text_blocks(arange(4), 3).size(), 1);
  EXPECT_EQ(data::text_blocks(std::vector<int64_t>{}, 3).size(), 0);
  EXPECT_EQ(data::text_blocks(arange(4), std::numeric_limits<int64_t>::max()).size(), 0);
  refused([] { (void)data::text_blocks(arange(4), 0); }, Error::Kind::argument);
  refused([] { (void)data::text_blocks(zeros({2, 2}), 1); }, Error::Kind::shape);
  refused([&] { (void)set.get(3); }, Error::Kind::index);
  for (auto [a, b] : data::DataLoader(set, {.batch_size = 3})) EXPECT_EQ(a.shape(), (Shape{3, 3}));
}

TEST(DataText, Utf8) {
  using data::decode_utf8;
  EXPECT_EQ(decode_utf8("\xe2\x82\xac").character, 0x20acu);
  EXPECT_EQ(decode_utf8("\xf4\x8f\xbf\xbf").character, 0x10ffffu);
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xc3"})
    EXPECT_FALSE(decode_utf8(bad).valid);
  EXPECT_EQ(data::valid_utf8("a\xe2\x82z\xff"), "a\xef\xbf\xbdz\xef\xbf\xbd");
}
