// volta completion: a script that teaches the shell the commands and flags, made from the program's own description.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
#include "requests.h"

namespace volta::app {
namespace {

std::string words(const Command& command) {
  std::string list;
  for (const Command& sub : command.commands()) list += sub.name() + " ";
  for (const std::string& name : command.long_names()) list += "--" + name + " ";
  return list;
}

std::string script(const Command& program, const std::string& shell) {
  std::string text = shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  text += "_volta() {\n  local word=${COMP_WORDS[COMP_CWORD]} i\n  local words=\"" + words(program) + "\"\n";
  text += "  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case ${COMP_WORDS[i]} in\n";
  for (const Command& sub : program.commands())
    text += "      " + sub.name() + ") words=\"" + words(sub) + "--json --threads\" && break ;;\n";
  return text +
         "    esac\n  done\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  [[ $word == -* ]] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n}\n"
         "complete -o filenames -F _volta volta\n";
}

}  // namespace

void add_completion(Command program, Common& common) {
  Command command = program.command("completion", "print a completion script: source <(volta completion bash)");
  auto shell = std::make_shared<std::string>("bash");
  command.option("shell", *shell, "bash or zsh").shown().one_of({"bash", "zsh"});
  command.on_run([&common, program, shell] {
    const std::string text = script(program, *shell);
    std::fputs((common.json ? dumped({{"shell", *shell}, {"script", text}}) + "\n" : text).c_str(), stdout);
  });
}

}  // namespace volta::app
