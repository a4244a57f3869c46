// JsonReader: reads a JSON text value by value, without a tree: what a caller does not ask for costs no memory.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "io/file.h"

namespace volta::io {

// The caller says what it expects next; anything else is an Error that names the file and the place:
//   json.object([&](const std::string& key) { if (key == "step") step = json.integer(); else json.skip(); });
class JsonReader {
 public:
  JsonReader(std::string_view text, const FileContext& context, std::string part)
      : text_(text), context_(context), part_(std::move(part)) {}

  template <class F> void object(F&& each) {
    open('{', "an object");
    std::set<std::string> seen;
    for (bool first = true; !closes('}', first); first = false) {
      const std::string key = string();
      if (!seen.insert(key).second) fail("the key '" + key + "' stands twice in one object");
      expect(':');
      each(key);
    }
    --depth_;
  }
  template <class F> void array(F&& each) {
    open('[', "a list");
    for (bool first = true; !closes(']', first); first = false) each();
    --depth_;
  }
  std::string string();
  int64_t integer();  // of 64 bits, without fraction or exponent
  double number();
  bool boolean();
  void skip();  // a value of any kind
  void end();   // nothing but blanks may follow
  [[noreturn]] void fail(const std::string& what) const;

 private:
  static constexpr int max_depth = 64;
  void open(char bracket, const char* what);
  bool closes(char bracket, bool first);
  void expect(char c);
  char next();  // the next character that is no blank, 0 at the end
  bool takes(std::string_view word);
  std::string_view number_text();
  uint32_t four_hex();
  void escape(std::string& out);

  std::string_view text_;
  const FileContext& context_;
  std::string part_;  // of the file, for errors
  size_t at_ = 0;
  int depth_ = 0;
};

bool is_utf8(std::string_view text);
std::string json_quote(std::string_view text);  // of valid UTF-8

}  // namespace volta::io
