// volta completion: a script that teaches the shell the commands and flags, made from the program's own description.
#include <cstdio>

#include "command.h"

namespace volta::app {
namespace {

std::string words(const Command& command) {
  std::string list;
  for (const Command& sub : command.commands()) list += sub.name() + " ";
  for (const std::string& name : command.long_names()) list += "--" + name + " ";
  return list;
}

void print_bash(const Command& program) {
  std::printf("_volta() {\n  local word=${COMP_WORDS[COMP_CWORD]} i\n  local words=\"%s\"\n", words(program).c_str());
  std::printf("  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case ${COMP_WORDS[i]} in\n");
  for (const Command& sub : program.commands())
    std::printf("      %s) words=\"%s--json --threads\" && break ;;\n", sub.name().c_str(), words(sub).c_str());
  std::printf(
      "    esac\n  done\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  [[ $word == -* ]] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n}\n"
      "complete -o filenames -F _volta volta\n");
}

}  // namespace

void add_completion(Command program, Common&) {
  Command command = program.command("completion", "print a completion script: source <(volta completion bash)");
  auto shell = std::make_shared<std::string>("bash");
  command.option("shell", *shell, "bash or zsh").shown().one_of({"bash", "zsh"});
  command.on_run([program, shell] {
    if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
    print_bash(program);
  });
}

}  // namespace volta::app
