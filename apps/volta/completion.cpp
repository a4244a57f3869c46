// volta completion: a script that teaches the shell the commands and flags, made from the program's own description.
#include <cstdio>

#include "command.h"

namespace volta::app {
namespace {

std::string words(const CLI::App& app) {
  std::string list;
  for (const CLI::App* sub : app.get_subcommands({})) list += sub->get_name() + " ";
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) list += "--" + name + " ";
  return list;
}

void print_bash(const CLI::App& program) {
  std::printf("_volta() {\n  local word=${COMP_WORDS[COMP_CWORD]} i\n  local words=\"%s\"\n", words(program).c_str());
  std::printf("  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case ${COMP_WORDS[i]} in\n");
  for (const CLI::App* sub : program.get_subcommands({}))
    std::printf("      %s) words=\"%s--json --threads\" && break ;;\n", sub->get_name().c_str(), words(*sub).c_str());
  std::printf(
      "    esac\n  done\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  [[ $word == -* ]] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n}\n"
      "complete -o filenames -F _volta volta\n");
}

}  // namespace

void add_completion(CLI::App& program, Common&) {
  CLI::App* const command =
      program.add_subcommand("completion", "print a completion script: source <(volta completion bash)");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "bash or zsh")->capture_default_str()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&program, shell] {
    if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
    print_bash(program);
  });
}

}  // namespace volta::app
