// Characters and bytes as tokens, and blocks of tokens.
#include <volta/data/text.h>

#include <set>

#include <volta/data/dataset.h>
#include <volta/ops.h>

#include "data/file.h"
#include "data/unicode.h"

namespace volta::data {

std::string read_text(const std::string& path) { return read_file(path, "read_text"); }

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(uint8_t(c));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (const int64_t t : tokens) {
    require(t >= 0 && t < 256, ErrorKind::index, "ByteTokenizer", "token ", t, " is no byte");
    text += char(t);
  }
  return text;
}

CharTokenizer::CharTokenizer(std::string_view text) {
  std::set<std::string> distinct;  // UTF-8 sorts as the codes do
  for (size_t n; !text.empty(); text.remove_prefix(n)) {
    n = decode_utf8(text).bytes;
    distinct.emplace(text.substr(0, n));
  }
  characters_.assign(distinct.begin(), distinct.end());
  for (size_t i = 0; i < characters_.size(); ++i) places_[characters_[i]] = int64_t(i);
}

std::vector<int64_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  for (size_t n; !text.empty(); text.remove_prefix(n)) {
    n = decode_utf8(text).bytes;
    const auto found = places_.find(text.substr(0, n));
    require(found != places_.end(), ErrorKind::argument, "CharTokenizer", "the character ", shown(text.substr(0, n)),
            " is not among the ", characters_.size(), " that it was made of");
    tokens.push_back(found->second);
  }
  return tokens;
}

std::string CharTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (const int64_t t : tokens) {
    require(t >= 0 && t < vocab_size(), ErrorKind::index, "CharTokenizer", "token ", t, " of ", vocab_size());
    text += characters_[size_t(t)];
  }
  return text;
}

TextBlocks::TextBlocks(const Tensor& tokens, Int length, const TextBlockOptions& options)
    : tokens_(tokens.checked("text_blocks").to(i64).contiguous()),
      length_(length),
      stride_(options.stride ? options.stride : int64_t(length)) {
  constexpr const char* op = "text_blocks";
  require(tokens.dim() == 1, ErrorKind::shape, op, "tokens are [n], got ", tokens);
  require(length_ > 0 && stride_ > 0, ErrorKind::argument, op, "length ", length_, ", stride ", stride_);
  const int64_t n = tokens_.size(0);
  size_ = n - 1 < length_ ? 0 : (n - 1 - length_) / stride_ + 1;
}

std::tuple<Tensor, Tensor> TextBlocks::get(int64_t i) const {
  detail::check_item(i, size_, "text_blocks");
  const int64_t at = i * stride_;
  return {tokens_.slice(0, at, at + length_), tokens_.slice(0, at + 1, at + 1 + length_)};
}

TextBlocks text_blocks(const Tensor& tokens, Int length, const TextBlockOptions& options) {
  return TextBlocks(tokens, length, options);
}
TextBlocks text_blocks(const std::vector<int64_t>& tokens, Int length, const TextBlockOptions& options) {
  return TextBlocks(tensor(tokens, {tokens.size()}, {.device = Device()}), length, options);
}

}  // namespace volta::data
