#include "command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

namespace volta::app {

// CLI11's ranges let nan pass: it is neither below nor above.
static CLI::Option* with_range(CLI::Option* option, const CLI::Validator& range) {
  const auto refuse_nan = [](const std::string& text) {
    double number = 0;
    const bool nan = CLI::detail::lexical_cast(text, number) && std::isnan(number);
    return nan ? text + " is not a number" : std::string();
  };
  return option->check(range)->check(refuse_nan);
}

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::shown() {
  option_->capture_default_str();
  return *this;
}
template <class T> Option& Option::within(T low, T high) {
  with_range(option_, CLI::Range(low, high));
  return *this;
}
template Option& Option::within(int low, int high);
template Option& Option::within(int64_t low, int64_t high);
template Option& Option::within(double low, double high);
// CLI11's own say which numbers there are, in 309 digits.
static void check_number(CLI::Option* option, bool zero) {
  option->check([zero](const std::string& text) {
    // Which CLI11 would take for the largest there is.
    uint64_t whole = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), whole).ec == std::errc::result_out_of_range)
      return text + " is more than 64 bits hold";
    double number = 0;
    const bool fine =
        CLI::detail::lexical_cast(text, number) && std::isfinite(number) && (number > 0 || (zero && number == 0));
    return fine ? std::string() : text + " is not a number " + (zero ? "from 0 on" : "above 0");
  });
}
Option& Option::positive() {
  check_number(option_, false);
  return *this;
}
Option& Option::not_negative() {
  check_number(option_, true);
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Command Command::command(const std::string& name, const std::string& text) {
  return Command(*app_->add_subcommand(name, text));
}
template <class T> Option Command::option(const std::string& names, T& value, const std::string& text) {
  return Option(app_->add_option(names, value, text));
}
template Option Command::option(const std::string& names, std::string& value, const std::string& text);
template Option Command::option(const std::string& names, std::vector<std::string>& value, const std::string& text);
template Option Command::option(const std::string& names, int& value, const std::string& text);
template Option Command::option(const std::string& names, int64_t& value, const std::string& text);
template Option Command::option(const std::string& names, uint64_t& value, const std::string& text);
template Option Command::option(const std::string& names, double& value, const std::string& text);
Option Command::flag(const std::string& name, bool& value, const std::string& text) {
  return Option(app_->add_flag(name, value, text));
}
void Command::on_run(std::function<void()> run) { app_->callback(std::move(run)); }

// The long name of an option, or a place in the line.
static CLI::Option* option_named(CLI::App& app, const std::string& name) {
  CLI::Option* const option = app.get_option_no_throw("--" + name);
  return option ? option : app.get_option_no_throw(name);
}
bool Command::fill(const std::string& name, const std::function<std::vector<std::string>()>& values) try {
  CLI::Option* const option = option_named(*app_, name);
  if (!option || name == "help") return false;
  if (option->count() > 0) return true;
  for (const std::string& value : values()) option->add_result(value);
  option->run_callback();
  return true;
} catch (const CLI::ParseError& e) {
  throw Program::UsageError(e.what());
}
bool Command::given(const std::string& name) const {
  const CLI::Option* const option = option_named(*app_, name);
  return option && option->count() > 0;
}

std::string Command::name() const { return app_->get_name(); }
std::vector<Command> Command::commands() const {
  std::vector<Command> list;
  for (CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; })) list.emplace_back(*sub);
  return list;
}
std::vector<std::string> Command::long_names() const {
  std::vector<std::string> list;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    for (const std::string& name : option->get_lnames()) list.push_back(name);
  return list;
}

Program::Program(const std::string& name, const std::string& text, const std::string& version,
                 const std::string& footer)
    : app_(std::make_unique<CLI::App>(text, name)) {
  app_->require_subcommand(1);
  app_->fallthrough();
  app_->set_version_flag("--version", version, "print the version and exit");
  app_->footer(footer);
}
Program::~Program() = default;

// CLI11 passes over words that are no command and then says that one is missing.
static void require_command(const Command& program, int count, char** arguments) {
  if (count < 2 || arguments[1][0] == '-') return;
  for (const Command& command : program.commands())
    if (command.name() == arguments[1]) return;
  throw Program::UsageError("there is no command '" + std::string(arguments[1]) + "'");
}

void Program::run(int count, char** arguments) try { app_->parse(count, arguments); } catch (const CLI::ParseError& e) {
  require_command(root(), count, arguments);  // now that it is known whether to answer in JSON
  if (e.get_exit_code() != int(CLI::ExitCodes::Success)) throw UsageError(e.what());
  app_->exit(e);  // --help and --version
}

}  // namespace volta::app
