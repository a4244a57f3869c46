// GPT-2's tokenizer: texts are cut into words, the bytes of a word are written as letters, and pairs merge by rank.
#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>

#include <volta/data/text.h>

#include "data/file.h"
#include "data/unicode.h"
#include "io/json.h"

namespace volta::data {
namespace {

constexpr const char* op = "Gpt2Tokenizer";

std::string utf8(uint32_t c) {  // below U+0800
  if (c < 0x80) return std::string(1, char(c));
  return {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
}

// The character that stands for each byte in the vocabulary: itself where it can be seen, else one from U+0100 on.
const std::array<uint32_t, 256>& byte_characters() {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
      t[b] = visible ? b : next++;
    }
    return t;
  }();
  return table;
}

// {"token": id, …} and nothing else.
void read_vocab(std::string_view text, const std::string& name, std::unordered_map<std::string, int64_t>& vocab) {
  const io::FileContext context{op, name};
  io::JsonReader json(text, context, "the vocabulary");
  json.object([&](const std::string& token) {
    const int64_t id = json.integer();
    context.require(id >= 0 && id < 0x7fffffff, "token ", shown(token), " has number ", id);
    vocab.emplace(token, id);
  });
  json.end();
}

// Where the next word of a text ends: a contraction; letters, numbers or others with a space before them; or spaces, of
// which the last is left to a word that follows.
size_t word_length(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(end)) return end.size();
  const auto kind_at = [&](size_t i) { return kind_of(decode_utf8(text.substr(i)).character); };
  size_t at = text[0] == ' ' && text.size() > 1 && kind_at(1) != CharKind::space ? 1 : 0;
  const CharKind kind = kind_at(at);
  size_t last = at;
  while (at < text.size() && kind_at(at) == kind) {
    last = at;
    at += decode_utf8(text.substr(at)).bytes;
  }
  if (kind != CharKind::space || at == text.size()) return at;
  return last > 0 ? last : at;
}

struct Merge {
  int64_t rank, token;
};
uint64_t pair_key(int64_t left, int64_t right) { return uint64_t(left) << 32 | uint64_t(right); }

}  // namespace

struct Gpt2Tokenizer::Model {
  std::unordered_map<std::string, int64_t> vocab;
  std::unordered_map<int64_t, std::string> tokens;  // as bytes
  std::unordered_map<uint64_t, Merge> merges;
  std::array<int64_t, 256> bytes{};  // the token of each, -1 where there is none
  std::vector<std::pair<std::string, int64_t>> special;
  bool prefix_space = false;

  void read_merges(std::string_view text, const std::string& name);
  void name_bytes();
  void merge_word(std::string_view word, std::vector<int64_t>& out) const;
  void encode_plain(std::string_view text, std::vector<int64_t>& out) const;
};

void Gpt2Tokenizer::Model::read_merges(std::string_view text, const std::string& name) {
  int64_t line = 0, rank = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.ends_with('\r')) pair.remove_suffix(1);
    if (pair.empty() || (line == 1 && pair.starts_with("#version"))) continue;
    const size_t space = pair.find(' ');
    require(space != std::string_view::npos && space > 0 && space + 1 < pair.size() &&
                pair.find(' ', space + 1) == std::string_view::npos,
            ErrorKind::io, op, name, ": line ", line, " is not two tokens: ", shown(pair));
    const std::string left(pair.substr(0, space)), right(pair.substr(space + 1));
    const auto id = [&](const std::string& token) {
      const auto found = vocab.find(token);
      require(found != vocab.end(), ErrorKind::io, op, name, ": line ", line, ": the vocabulary has no ", shown(token));
      return found->second;
    };
    merges.emplace(pair_key(id(left), id(right)), Merge{rank++, id(left + right)});
  }
}

void Gpt2Tokenizer::Model::name_bytes() {
  std::unordered_map<uint32_t, char> byte_of;
  for (uint32_t b = 0; b < 256; ++b) {
    const uint32_t c = byte_characters()[b];
    byte_of[c] = char(b);
    const auto found = vocab.find(utf8(c));
    bytes[b] = found == vocab.end() ? -1 : found->second;
  }
  for (const auto& [token, id] : vocab) {
    std::string raw;
    std::string_view left = token;
    for (size_t n; !left.empty(); left.remove_prefix(n)) {
      const Decoded d = decode_utf8(left);
      n = d.bytes;
      const auto byte = d.valid ? byte_of.find(d.character) : byte_of.end();
      if (byte != byte_of.end()) raw += byte->second;
      else raw += left.substr(0, n);  // of tokens that stand for no bytes
    }
    require(tokens.emplace(id, raw).second, ErrorKind::io, op, "two tokens of the vocabulary have number ", id);
  }
}

// The pair of least rank merges first, the leftmost of equals; a heap of pairs keeps long words from taking long.
void Gpt2Tokenizer::Model::merge_word(std::string_view word, std::vector<int64_t>& out) const {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  struct Part {
    int64_t token;
    size_t before, after;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < word.size(); ++i) {
    const int64_t token = bytes[uint8_t(word[i])];
    require(token >= 0, ErrorKind::argument, op, "the vocabulary has no token for byte ", int(uint8_t(word[i])));
    parts.push_back({token, i == 0 ? none : i - 1, i + 1 == word.size() ? none : i + 1});
  }
  struct Candidate {
    int64_t rank;
    size_t at;
    int64_t left, right, merged;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](size_t i) {
    if (i == none || parts[i].after == none) return;
    const int64_t left = parts[i].token, right = parts[parts[i].after].token;
    if (const auto m = merges.find(pair_key(left, right)); m != merges.end())
      heap.push({m->second.rank, i, left, right, m->second.token});
  };
  for (size_t i = 0; i < parts.size(); ++i) consider(i);
  while (!heap.empty()) {
    const Candidate c = heap.top();
    heap.pop();
    Part& left = parts[c.at];
    if (left.token != c.left || left.after == none || parts[left.after].token != c.right) continue;  // no longer there
    Part& right = parts[left.after];
    right.token = -1;
    left.token = c.merged;
    left.after = right.after;
    if (left.after != none) parts[left.after].before = c.at;
    consider(left.before);
    consider(c.at);
  }
  for (size_t i = 0; i != none && i < parts.size(); i = parts[i].after) out.push_back(parts[i].token);
}

void Gpt2Tokenizer::Model::encode_plain(std::string_view text, std::vector<int64_t>& out) const {
  std::string spaced;
  if (prefix_space && !text.empty() && text[0] != ' ') text = spaced = " " + std::string(text);
  for (size_t n; !text.empty(); text.remove_prefix(n)) {
    n = word_length(text);
    merge_word(text.substr(0, n), out);
  }
}

std::shared_ptr<const Gpt2Tokenizer::Model> Gpt2Tokenizer::read(std::string_view vocab, const std::string& vocab_name,
                                                                std::string_view merges, const std::string& merges_name,
                                                                const Gpt2Options& options) {
  const auto model = std::make_shared<Model>();
  read_vocab(vocab, vocab_name, model->vocab);
  model->read_merges(merges, merges_name);
  model->name_bytes();
  model->prefix_space = options.add_prefix_space;
  for (const std::string& token : options.special_tokens) {
    const auto found = model->vocab.find(token);
    require(!token.empty() && found != model->vocab.end(), ErrorKind::argument, op, vocab_name,
            " has no special token ", shown(token));
    model->special.emplace_back(token, found->second);
  }
  std::stable_sort(model->special.begin(), model->special.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return model;
}

Gpt2Tokenizer::Gpt2Tokenizer(const std::string& vocab_file, const std::string& merges_file, const Gpt2Options& options)
    : model_(read(read_file(vocab_file, op), vocab_file, read_file(merges_file, op), merges_file, options)) {}

Gpt2Tokenizer Gpt2Tokenizer::from_text(std::string_view vocab, std::string_view merges, const Gpt2Options& options) {
  return Gpt2Tokenizer(read(vocab, "the vocabulary", merges, "the merges", options));
}

namespace {
// That of a tokenizer that was moved from is gone.
template <class Model> const Model& held(const std::shared_ptr<const Model>& model) {
  require(model != nullptr, ErrorKind::argument, op, "the tokenizer was moved from");
  return *model;
}
}  // namespace

int64_t Gpt2Tokenizer::vocab_size() const { return int64_t(held(model_).vocab.size()); }

std::vector<int64_t> Gpt2Tokenizer::encode(std::string_view text) const {
  const auto& special = held(model_).special;     // the longest comes first
  std::vector<size_t> places(special.size(), 0);  // where each comes next; looked for once it lies behind
  std::vector<int64_t> out;
  for (size_t begin = 0; begin < text.size();) {
    size_t at = std::string_view::npos, found = 0;
    for (size_t i = 0; i < special.size(); ++i) {
      if (begin == 0 || places[i] < begin) places[i] = text.find(special[i].first, begin);
      if (places[i] < at) at = places[i], found = i;
    }
    held(model_).encode_plain(text.substr(begin, at == std::string_view::npos ? at : at - begin), out);
    if (at == std::string_view::npos) break;
    out.push_back(special[found].second);
    begin = at + special[found].first.size();
  }
  return out;
}

std::string Gpt2Tokenizer::decode_bytes(std::span<const int64_t> ids) const {
  std::string out;
  for (const int64_t id : ids) {
    const auto found = held(model_).tokens.find(id);
    require(found != held(model_).tokens.end(), ErrorKind::index, op, "there is no token ", id, " in a vocabulary of ",
            vocab_size());
    out += found->second;
  }
  return out;
}

std::string Gpt2Tokenizer::decode(std::span<const int64_t> tokens) const { return valid_utf8(decode_bytes(tokens)); }

int64_t Gpt2Tokenizer::token_to_id(std::string_view token) const {
  const auto found = held(model_).vocab.find(std::string(token));
  return found == held(model_).vocab.end() ? -1 : found->second;
}

}  // namespace volta::data
