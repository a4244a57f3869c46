// The commands. Each adds itself with its flags to the program, and runs when it is chosen.
#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <volta/error.h>

#include "terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace volta::app {

// Flags that every command takes, and what the chosen one ended with.
struct Common {
  bool json = false;
  int threads = 0;
  int status = Exit::ok;
  Terminal terminal() const { return Terminal::detect(json); }
};

// CLI11 takes seconds to compile wherever it is included: the commands see these two handles.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& shown();  // --help prints the value that the variable has now
  template <class T> Option& within(T low, T high);
  Option& positive();
  Option& not_negative();
  Option& one_of(const std::vector<std::string>& words);

 private:
  CLI::Option* option_;
};

// program.command("info", "list the tensors").option("file", file, "the file").required()
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  Command command(const std::string& name, const std::string& text);
  // A name without dashes is a place in the line.
  template <class T> Option option(const std::string& names, T& value, const std::string& text);
  Option flag(const std::string& name, bool& value, const std::string& text);
  void on_run(std::function<void()> run);
  // Gives an option its values unless the command line did; false where there is no such option.
  bool fill(const std::string& name, const std::function<std::vector<std::string>()>& values);
  bool given(const std::string& name) const;  // by the command line, or by fill
  std::string name() const;
  std::vector<Command> commands() const;
  std::vector<std::string> long_names() const;  // of its options, without dashes

 private:
  CLI::App* app_;
};

// The command line as a whole.
class Program {
 public:
  struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  Program(const std::string& name, const std::string& text, const std::string& version, const std::string& footer);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Command root() { return Command(*app_); }
  // Runs what looks at words of the command line: the Error it throws is one of usage.
  template <class F> static void check_usage(const F& look) {
    try {
      look();
    } catch (const Error& e) {
      throw UsageError(e.what());
    }
  }
  // Runs the command that the line names. A line that is wrong throws UsageError before anything has run.
  void run(int count, char** arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

void add_train(Command program, Common& common);
void add_eval(Command program, Common& common);
void add_predict(Command program, Common& common);
void add_generate(Command program, Common& common);
void add_serve(Command program, Common& common);
void add_summary(Command program, Common& common);
void add_info(Command program, Common& common);
void add_convert(Command program, Common& common);
void add_plot(Command program, Common& common);
void add_bench(Command program, Common& common);
void add_doctor(Command program, Common& common);
void add_completion(Command program, Common& common);

}  // namespace volta::app
