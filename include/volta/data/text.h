// Text as numbers: characters, bytes, GPT-2's byte pairs; and blocks of tokens to learn from.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <volta/tensor.h>

namespace volta::data {

[[nodiscard]] std::string read_text(const std::string& path);

// Each byte is a token.
class ByteTokenizer {
 public:
  int64_t vocab_size() const { return 256; }
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(std::span<const int64_t> tokens) const;
};

// Each character of a text is a token, numbered in the order of their codes: CharTokenizer(read_text("a.txt")).
class CharTokenizer {
 public:
  explicit CharTokenizer(std::string_view text);
  int64_t vocab_size() const { return int64_t(characters_.size()); }
  const std::vector<std::string>& characters() const& { return characters_; }
  std::vector<std::string> characters() && { return std::move(characters_); }
  std::vector<int64_t> encode(std::string_view text) const;  // a character that the text had not is an Error
  std::string decode(std::span<const int64_t> tokens) const;

 private:
  std::vector<std::string> characters_;
  std::map<std::string, int64_t, std::less<>> places_;
};

struct Gpt2Options {
  bool add_prefix_space = false;
  std::vector<std::string> special_tokens = {};  // found whole in texts, as "<|endoftext|>"; the vocabulary has them
};
// GPT-2's tokenizer from its two files, as the Hugging Face Hub has them: Gpt2Tokenizer t("vocab.json", "merges.txt").
// encode and decode are those of PyPI's `tokenizers`. It is a value, cheap to copy, and may be used by many threads.
class Gpt2Tokenizer {
 public:
  Gpt2Tokenizer(const std::string& vocab_file, const std::string& merges_file, const Gpt2Options& options = {});
  // From the contents of the files.
  static Gpt2Tokenizer from_text(std::string_view vocab, std::string_view merges, const Gpt2Options& options = {});

  int64_t vocab_size() const;
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(std::span<const int64_t> tokens) const;        // U+FFFD for bytes that are no characters
  std::string decode_bytes(std::span<const int64_t> tokens) const;  // as they are: a token may end inside a character
  int64_t token_to_id(std::string_view token) const;                // -1 where there is none

 private:
  struct Model;
  static std::shared_ptr<const Model> read(std::string_view vocab, const std::string& vocab_name,
                                           std::string_view merges, const std::string& merges_name,
                                           const Gpt2Options& options);
  explicit Gpt2Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

struct TextBlockOptions {
  int64_t stride = 0;  // how far apart blocks begin; their length unless given
};
// Blocks of a long text, each with the same moved on by one, for models that predict the next token.
class TextBlocks {
 public:
  TextBlocks(const Tensor& tokens, Int length, const TextBlockOptions& options = {});
  int64_t size() const { return size_; }
  std::tuple<Tensor, Tensor> get(int64_t i) const;

 private:
  Tensor tokens_;
  int64_t length_, stride_, size_;
};
// text_blocks(tokenizer.encode(text), 256) has the items {tokens [256], the next tokens [256]}.
[[nodiscard]] TextBlocks text_blocks(const Tensor& tokens, Int length, const TextBlockOptions& options = {});
[[nodiscard]] TextBlocks text_blocks(const std::vector<int64_t>& tokens, Int length,
                                     const TextBlockOptions& options = {});

}  // namespace volta::data
