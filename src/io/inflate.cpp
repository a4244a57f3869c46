// RFC 1951 and 1952. Each Huffman code becomes one table that is indexed by the next bits of the input.
#include "io/inflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "io/crc32.h"
#include "io/endian.h"

namespace volta::io {
namespace {

constexpr int longest_code = 15;
constexpr int end_of_block = 256;

struct BitReader {
  const FileContext& context;
  Bytes input;
  size_t at = 0;
  uint64_t held = 0;
  int count = 0;  // bits in `held`

  void refill() {
    if (input.size() - at >= 8) {
      held |= load_little<uint64_t>(input, at) << count;
      const int bytes = (63 - count) / 8;
      at += size_t(bytes);
      count += 8 * bytes;
      return;
    }
    for (; count <= 56 && at < input.size(); count += 8) held |= std::to_integer<uint64_t>(input[at++]) << count;
  }
  void drop(int bits) {
    context.require(bits <= count, "the compressed data end too early");
    held >>= bits;
    count -= bits;
  }
  uint32_t take(int bits) {
    if (count < bits) refill();
    const auto value = uint32_t(held & ((uint64_t(1) << bits) - 1));
    drop(bits);
    return value;
  }
  // Back to whole bytes; those read ahead are given back.
  void align() {
    drop(count % 8);
    at -= size_t(count / 8);
    held = 0;
    count = 0;
  }
};

class HuffmanCode {
 public:
  // Lengths of the codes of symbols 0, 1, …; 0 for those that have none.
  HuffmanCode(const FileContext& context, std::span<const uint8_t> lengths) {
    std::array<int, longest_code + 1> counts = {};
    for (const uint8_t length : lengths) ++counts[length];
    counts[0] = 0;
    bits_ = longest_code;
    while (bits_ > 1 && counts[size_t(bits_)] == 0) --bits_;
    std::array<uint32_t, longest_code + 2> next = {};
    int32_t left = 1;
    for (size_t length = 1; length <= longest_code; ++length) {
      left = 2 * left - counts[length];
      context.require(left >= 0, "the compressed data hold an impossible Huffman code");
      next[length + 1] = (next[length] + uint32_t(counts[length])) << 1;
    }
    table_.assign(size_t(1) << bits_, 0);
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (const int length = lengths[symbol]) enter(uint32_t(symbol), length, next[size_t(length)]++);
  }

  uint32_t read(BitReader& in) const {
    if (in.count < longest_code) in.refill();
    const uint32_t entry = table_[in.held & (table_.size() - 1)];
    in.context.require(entry != 0, "the compressed data hold an unknown code");
    in.drop(int(entry & 15));
    return entry >> 4;
  }

 private:
  // Codes are sent highest bit first, all else lowest first: the code is turned round.
  void enter(uint32_t symbol, int length, uint32_t code) {
    uint32_t place = 0;
    for (int i = 0; i < length; ++i) place |= (code >> i & 1) << (length - 1 - i);
    for (; place < table_.size(); place += uint32_t(1) << length) table_[place] = symbol << 4 | uint32_t(length);
  }
  int bits_ = 1;
  std::vector<uint32_t> table_;  // symbol << 4 | length, 0 for none
};

// Matches: the least length or distance of a symbol, and how many further bits it takes.
constexpr std::array<uint16_t, 29> length_base = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> length_bits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> distance_base = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                    33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 30> distance_bits = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                                   6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

class Inflater {
 public:
  Inflater(const FileContext& context, Bytes input, size_t limit)
      : context_(context), in_{context, input}, limit_(limit) {
    out_.reserve(std::min(limit, 4 * input.size()));
  }
  Inflated run() {
    for (bool last = false; !last;) {
      last = in_.take(1) == 1;
      switch (in_.take(2)) {
        case 0: stored(); break;
        case 1: fixed(); break;
        case 2: dynamic(); break;
        default: context_.fail("the compressed data hold a block of an unknown kind");
      }
    }
    in_.align();
    return {std::move(out_), in_.at};
  }

 private:
  void make_room(size_t more) const {
    context_.require(more <= limit_ - out_.size(), "the compressed data hold more than the ", limit_,
                     " bytes expected");
  }
  void stored() {
    in_.align();
    context_.require(in_.input.size() - in_.at >= 4, "the compressed data end too early");
    const auto length = load_little<uint16_t>(in_.input, in_.at),
               inverse = load_little<uint16_t>(in_.input, in_.at + 2);
    in_.at += 4;
    context_.require(length == uint16_t(~inverse), "the compressed data hold a damaged block");
    context_.require(in_.input.size() - in_.at >= length, "the compressed data end too early");
    make_room(length);
    const Bytes bytes = in_.input.subspan(in_.at, length);
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    in_.at += length;
  }
  void fixed() {
    std::array<uint8_t, 288> lengths = {};
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    const std::array<uint8_t, 30> distances = [] {
      std::array<uint8_t, 30> all;
      all.fill(5);
      return all;
    }();
    block(HuffmanCode(context_, lengths), HuffmanCode(context_, distances));
  }
  void dynamic() {
    static constexpr std::array<uint8_t, 19> order = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const size_t literals = in_.take(5) + 257, distances = in_.take(5) + 1, count = in_.take(4) + 4;
    context_.require(literals <= 286 && distances <= 30, "the compressed data hold a code of too many symbols");
    std::array<uint8_t, 19> first = {};
    for (size_t i = 0; i < count; ++i) first[order[i]] = uint8_t(in_.take(3));
    const HuffmanCode code(context_, first);
    std::array<uint8_t, 286 + 30> lengths = {};
    for (size_t i = 0; i < literals + distances;) {
      const uint32_t symbol = code.read(in_);
      if (symbol < 16) {
        lengths[i++] = uint8_t(symbol);
        continue;
      }
      context_.require(symbol != 16 || i > 0, "the compressed data repeat a length before the first");
      const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t(0);
      const size_t times = symbol == 16 ? 3 + in_.take(2) : symbol == 17 ? 3 + in_.take(3) : 11 + in_.take(7);
      context_.require(times <= literals + distances - i, "the compressed data hold too many lengths of codes");
      std::fill_n(lengths.begin() + std::ptrdiff_t(i), times, value);
      i += times;
    }
    const std::span all(lengths);
    block(HuffmanCode(context_, all.first(literals)), HuffmanCode(context_, all.subspan(literals, distances)));
  }
  void block(const HuffmanCode& literals, const HuffmanCode& distances) {
    for (;;) {
      const uint32_t symbol = literals.read(in_);
      if (symbol == end_of_block) return;
      if (symbol < end_of_block) {
        make_room(1);
        out_.push_back(std::byte(symbol));
      } else {
        match(symbol - end_of_block - 1, distances);
      }
    }
  }
  void match(size_t symbol, const HuffmanCode& distances) {
    context_.require(symbol < length_base.size(), "the compressed data hold an unknown length");
    const size_t length = length_base[symbol] + in_.take(length_bits[symbol]);
    const size_t far = distances.read(in_);
    context_.require(far < distance_base.size(), "the compressed data hold an unknown distance");
    const size_t distance = distance_base[far] + in_.take(distance_bits[far]);
    context_.require(distance <= out_.size(), "the compressed data refer to before their beginning");
    make_room(length);
    const size_t from = out_.size() - distance;
    out_.resize(out_.size() + length);
    std::byte* const to = out_.data() + out_.size() - length;
    for (size_t i = 0; i < length; ++i) to[i] = out_[from + i];  // may overlap: it then repeats itself
  }

  const FileContext& context_;
  BitReader in_;
  size_t limit_;
  std::vector<std::byte> out_;
};

constexpr std::byte magic[2] = {std::byte(0x1f), std::byte(0x8b)};

// Where the compressed data of a gzip member begin.
size_t skip_gzip_header(const FileContext& context, Bytes file) {
  enum : unsigned { has_crc = 2, has_extra = 4, has_name = 8, has_comment = 16, reserved = 0xe0 };
  const auto need = [&](size_t bytes) { context.require(bytes <= file.size(), "the gzip header is cut short"); };
  need(10);
  context.require(looks_like_gzip(file) && file[2] == std::byte(8), "not a gzip file");
  const auto flags = std::to_integer<unsigned>(file[3]);
  context.require((flags & reserved) == 0, "the gzip header has unknown flags");
  size_t at = 10;
  if (flags & has_extra) {
    need(at + 2);
    at += 2 + size_t(load_little<uint16_t>(file, at));
    need(at);
  }
  for (const unsigned text : {unsigned(has_name), unsigned(has_comment)}) {
    if (!(flags & text)) continue;
    while (at < file.size() && file[at] != std::byte(0)) ++at;
    need(++at);
  }
  if (flags & has_crc) at += 2;
  need(at);
  return at;
}

}  // namespace

Inflated inflate(const FileContext& context, Bytes compressed, size_t limit) {
  try {
    return Inflater(context, compressed, limit).run();
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::memory, context.op, context.path, ": no memory for the decompressed data");
  }
}

bool looks_like_gzip(Bytes file) { return file.size() >= 2 && file[0] == magic[0] && file[1] == magic[1]; }

std::vector<std::byte> gunzip(Bytes file, size_t limit, const FileContext& context) {
  std::vector<std::byte> all;
  do {
    file = file.subspan(skip_gzip_header(context, file));
    Inflated member = inflate(context, file, limit - all.size());
    file = file.subspan(member.consumed);
    context.require(file.size() >= 8, "the gzip file ends before its checksum");
    context.require(load_little<uint32_t>(file, 0) == crc32(member.bytes) &&
                        load_little<uint32_t>(file, 4) == uint32_t(member.bytes.size()),
                    "the gzip file is damaged: its checksum or length is wrong");
    file = file.subspan(8);
    if (all.empty()) {
      all = std::move(member.bytes);
    } else if (const size_t before = all.size(); !member.bytes.empty()) {
      all.resize(before + member.bytes.size());
      std::memcpy(all.data() + before, member.bytes.data(), member.bytes.size());
    }
    while (!file.empty() && file[0] == std::byte(0)) file = file.subspan(1);  // padding of tapes
  } while (!file.empty());
  return all;
}

}  // namespace volta::io
