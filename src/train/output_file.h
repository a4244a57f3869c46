// OutputFile: a file being written, whose every failure is an Error that names it.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace volta {

class OutputFile {
 public:
  OutputFile(const std::string& path, bool append, const char* op);
  void write(std::string_view bytes);
  void flush();  // to the system: what was written is seen by others
  // The line that says what the rows are: written to an empty file, and an Error where another one is there.
  void begin_with(const std::string& head);
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  [[noreturn]] void fail(const char* doing) const;
  std::string path_;
  const char* op_;
  bool empty_ = true;  // nothing was in it when it was opened
  std::unique_ptr<std::FILE, Close> file_;
};

void make_folder(const std::string& path, const char* op);  // with those around it

}  // namespace volta
