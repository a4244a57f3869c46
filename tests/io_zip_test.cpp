// Zip, inflate, gzip, CRC-32 and JSON: what other programs wrote, and what none would.
#include "io/zip.h"

#include "io/crc32.h"
#include "io/endian.h"
#include "io/inflate.h"
#include "io/json.h"
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";
const io::FileContext context{"read", "file.bin"};

io::Bytes bytes_of(const std::string& text) { return io::as_bytes(text); }
std::string text_of_bytes(const std::vector<std::byte>& bytes) { return std::string(io::as_text(bytes)); }

TEST(IoCrc32, KnownSums) {
  EXPECT_EQ(io::crc32(bytes_of("123456789")), 0xcbf43926u);
  EXPECT_EQ(io::crc32({}), 0u);
  const std::string text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(io::crc32(bytes_of(text)), 0x414fa339u);
  for (size_t cut = 0; cut < text.size(); ++cut)
    EXPECT_EQ(io::crc32(bytes_of(text.substr(cut)), io::crc32(bytes_of(text.substr(0, cut)))), 0x414fa339u);
}

TEST(IoInflate, Gzip) {
  const std::string file = read_file(data + "squares.gz");
  const std::vector<std::byte> out = io::gunzip(bytes_of(file), 20000);
  ASSERT_EQ(out.size(), 20000u);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::to_integer<size_t>(out[i]), i * i % 251);
  EXPECT_EQ(io::gunzip(bytes_of(file + file), 40000).size(), 40000u);  // members in a row
  EXPECT_EQ(io::gunzip(bytes_of(file + std::string(5, '\0')), 20000).size(), 20000u);
  expect_in("more than the 19999 bytes", error_of([&] { return io::gunzip(bytes_of(file), 19999); }));
  expect_in("more than", error_of([&] { return io::gunzip(bytes_of(file + file), 39999); }));
  expect_in("not a gzip", error_of([&] { return io::gunzip(bytes_of(file + "more than nothing"), 20000); }));
}

TEST(IoInflate, EveryByteOfAGzipFileMatters) {
  const std::string file = read_file(data + "squares.gz");
  for (size_t n = 0; n < file.size(); ++n)
    EXPECT_FALSE(attempt([&] { return io::gunzip(bytes_of(file.substr(0, n)), 20000); })) << n;
  const std::vector<std::byte> good = io::gunzip(bytes_of(file), 20000);
  for (size_t at = 18; at < file.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = file;
      bad[at] = char(bad[at] ^ 1 << bit);
      const auto result = attempt([&] { return io::gunzip(bytes_of(bad), 20000); });
      EXPECT_TRUE(!result || *result == good) << at;  // unused bits may change
    }
}

TEST(IoInflate, BlocksOfAllKinds) {
  const std::string stored = std::string("\x01\x03\x00\xfc\xff", 5) + "abc";
  EXPECT_EQ(text_of_bytes(io::inflate(context, bytes_of(stored), 3).bytes), "abc");
  EXPECT_EQ(io::inflate(context, bytes_of(stored + "tail"), 3).consumed, stored.size());
  const std::string fixed("\x4b\x4c\x4a\x06\x00", 5);  // "abc"
  EXPECT_EQ(text_of_bytes(io::inflate(context, bytes_of(fixed), 3).bytes), "abc");
  const std::string repeat("\x4b\x4c\x84\x81\x00", 5);
  (void)attempt([&] { return io::inflate(context, bytes_of(repeat), 1000); });
  expect_in("unknown kind", error_of([&] { return io::inflate(context, bytes_of("\x07"), 3); }));
  expect_in("damaged block", error_of([&] {
              return io::inflate(context, bytes_of(std::string("\x01\x03\x00\xfc\xfe", 5) + "abc"), 3);
            }));
  expect_in("end too early", error_of([&] { return io::inflate(context, bytes_of(stored.substr(0, 6)), 3); }));
  expect_in("end too early", error_of([&] { return io::inflate(context, {}, 3); }));
}

std::string archive(const Scratch& dir, size_t large = 10) {
  io::AtomicFile file("write", dir / "zip");
  io::ZipWriter zip(file);
  zip.add("a/first", {bytes_of("hello "), bytes_of("world")});
  const std::string many(large, 'x');
  zip.add("b", {bytes_of(many)});
  zip.add("empty", {});
  zip.finish();
  file.commit();
  return read_file(dir / "zip");
}

TEST(IoZip, RoundTripAndAlignment) {
  const Scratch dir;
  const io::ZipArchive zip(in_memory(archive(dir, 1000)));
  ASSERT_EQ(zip.members().size(), 3u);
  EXPECT_EQ(io::as_text(zip.read(*zip.find("a/first")).bytes()), "hello world");
  EXPECT_EQ(zip.read(*zip.find("b")).size, 1000u);
  EXPECT_EQ(zip.read(*zip.find("empty")).size, 0u);
  EXPECT_EQ(zip.find("absent"), nullptr);
  for (const io::ZipMember& m : zip.members()) EXPECT_EQ(m.begin % 64, 0u);
}

TEST(IoZip, TruncatedAndChanged) {
  const Scratch dir;
  const std::string whole = archive(dir);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(attempt([&] { return io::ZipArchive(in_memory(whole.substr(0, n))).members().size(); })) << n;
  for (size_t at = 0; at < whole.size(); ++at)
    for (const int change : {1, 0x80, 0xff}) {
      std::string bad = whole;
      bad[at] = char(bad[at] ^ change);
      (void)attempt([&] {
        const io::ZipArchive zip(in_memory(bad));
        for (const io::ZipMember& m : zip.members()) (void)zip.read(m);
        return 0;
      });
    }
  const size_t data_at = whole.find("hello world");
  std::string bad = whole;
  bad[data_at] = 'j';
  const io::ZipArchive zip(in_memory(bad));
  expect_in("'a/first' is damaged", error_of([&] { return zip.read(*zip.find("a/first")); }));
}

TEST(IoZip, Refusals) {
  const Scratch dir;
  const std::string whole = archive(dir);
  const auto open = [](const std::string& text) {
    return error_of([&] { return io::ZipArchive(in_memory(text)).members().size(); });
  };
  const size_t entry = whole.find("PK\1\2");
  const auto with = [&](size_t offset, const std::string& bytes) {
    std::string bad = whole;
    bad.replace(entry + offset, bytes.size(), bytes);
    return bad;
  };
  expect_in("encrypted", open(with(8, "\x01")));
  expect_in("method 12", open(with(10, "\x0c")));
  expect_in("two sizes differ", open(with(20, "\x05")));
  expect_in("its header is missing", open(with(42, "\x07")));
  const size_t second = whole.find("PK\1\2", entry + 4);
  std::string twice = whole;
  twice.replace(second + 46, 1, "a");
  std::string same_place = whole;
  same_place.replace(second + 42, 4, whole.substr(entry + 42, 4));
  expect_in("overlap", open(same_place));
  std::string bomb = with(10, "\x08");  // deflated
  bomb.replace(entry + 24, 4, std::string("\xfe\xff\xff\xff", 4));
  expect_in("more than its 11 compressed bytes can", open(bomb));
}

TEST(IoJson, ReadsAndRefuses) {
  const auto skip = [](const std::string& text) {
    io::JsonReader json(text, context, "the text");
    json.skip();
    json.end();
    return 0;
  };
  for (const char* good :
       {"{}", "[]", " [1, -2.5e+3, 0, 0.5, true, false, null, \"a\\u00e9\\ud83d\\ude00\\n\"] ", "{\"a\":{\"b\":[{}]}}"})
    EXPECT_EQ(skip(good), 0) << good;
  for (const char* bad : {"",
                          "{",
                          "[1,]",
                          "{\"a\":1,}",
                          "{\"a\"}",
                          "{a:1}",
                          "01",
                          "1.",
                          "-",
                          "1e",
                          ".5",
                          "tru",
                          "nul",
                          "\"",
                          "\"\\x\"",
                          "\"\\ud800\"",
                          "\"\\ud800\\u0041\"",
                          "\"\\udc00\"",
                          "\"\\u12\"",
                          "[1 2]",
                          "1 2",
                          "\"\x01\"",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "{\"a\":1,\"a\":2}",
                          "[}",
                          "NaN"})
    EXPECT_FALSE(attempt([&] { return skip(bad); })) << bad;
  expect_in("nested too deeply", error_of([&] { return skip(std::string(100, '[')); }));
  const std::string text = "\"a\\u00e9\\ud83d\\ude00\\/\"";
  io::JsonReader json(text, context, "the text");
  EXPECT_EQ(json.string(), "aé😀/");
  const std::string odd = "quote\" back\\ line\n tab\t bell\x07 é";
  const std::string quoted = io::json_quote(odd);
  EXPECT_EQ(io::JsonReader(quoted, context, "").string(), odd);
  EXPECT_FALSE(io::is_utf8("\xf5\x80\x80\x80"));
  EXPECT_FALSE(io::is_utf8("\xe2\x82"));
  EXPECT_TRUE(io::is_utf8("ὀδός"));
}

}  // namespace
}  // namespace volta
