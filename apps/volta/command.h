// The commands. Each adds itself with its flags to the program, and runs when it is chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "terminal.h"

namespace volta::app {

// Flags that every command takes, and what the chosen one ended with.
struct Common {
  bool json = false;
  int threads = 0;
  int status = Exit::ok;
  Terminal terminal() const { return Terminal::detect(json); }
};

void add_train(CLI::App& program, Common& common);
void add_eval(CLI::App& program, Common& common);
void add_predict(CLI::App& program, Common& common);
void add_generate(CLI::App& program, Common& common);
void add_serve(CLI::App& program, Common& common);
void add_summary(CLI::App& program, Common& common);
void add_info(CLI::App& program, Common& common);
void add_convert(CLI::App& program, Common& common);
void add_plot(CLI::App& program, Common& common);
void add_bench(CLI::App& program, Common& common);
void add_doctor(CLI::App& program, Common& common);
void add_completion(CLI::App& program, Common& common);

}  // namespace volta::app
