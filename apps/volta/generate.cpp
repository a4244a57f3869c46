// volta generate: a language model goes on with a text, shown as it comes.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "command.h"
#include "text_model.h"

namespace volta::app {

void add_generate(Command program, Common& common) {
  Command command = program.command("generate", "continue a text with a language model");
  struct Flags {
    std::string file;
    GenerateRequest request;
    int64_t seed = -1;
  };
  auto flags = std::make_shared<Flags>();
  GenerateRequest& r = flags->request;
  command.option("model", flags->file, "a file that volta train saved").required();
  command.option("prompt", r.prompt, "the beginning");
  command.option("--tokens", r.max_tokens, "how many to write").shown().within(0, 1 << 20);
  command.option("--temperature", r.temperature, "0 always takes the likeliest").shown().within(0.0, 100.0);
  command.option("--top-k", r.top_k, "only among so many; 0: all").shown().within(0, 1 << 20);
  command.option("--top-p", r.top_p, "only among those that make up this probability").shown().within(1e-6, 1.0);
  command.option("--seed", flags->seed, "the same seed writes the same text").within(int64_t(0), INT64_MAX);
  command.option("--stop", r.stop, "a text that ends it");
  command.on_run([&common, flags] {
    if (common.threads > 0) set_num_threads(common.threads);
    const auto network = std::make_shared<const Network>(Network::load(flags->file));
    if (network->recipe.task != Task::language)
      throw Error(Error::Kind::argument, "generate", flags->file + " is no language model; try volta predict");
    GenerateRequest request = flags->request;
    request.seed = flags->seed >= 0 ? uint64_t(flags->seed) : std::random_device()();
    std::string text;
    const bool seen = isatty(STDOUT_FILENO) != 0;  // a vocabulary may hold what a terminal obeys
    const TextModel model(network);
    (void)model.encode(request.prompt);  // throws before anything is shown
    if (!common.json) std::fputs(request.prompt.c_str(), stdout);
    const Generated made = model.generate(request, [&](const std::string& piece) {
      if (common.json) return text += piece, true;
      return std::fputs(seen ? printable(piece, true).c_str() : piece.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    });
    if (common.json)
      std::printf("%s\n", nlohmann::json{{"text", text}, {"finish_reason", made.why}, {"seed", request.seed}}
                              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                              .c_str());
    else std::printf("\n");
  });
}

}  // namespace volta::app
