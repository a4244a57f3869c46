// Reads what PyTorch wrote and writes it anew in every format, for tests/oracle/io_interop.py to compare.
#include <volta/volta.h>

#include <filesystem>
#include <iostream>

using namespace volta;

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: io_interop tests/data/io FOLDER\n";
    return 2;
  }
  const std::filesystem::path in = argv[1], out = argv[2];
  const StateDict state = read_torch(in / "dtypes.pt");
  write_torch(out / "dtypes.pt", state);
  write_safetensors(out / "dtypes.safetensors", state);
  write_npz(out / "dtypes.npz", StateMap().exclude("bf16.*").apply(state));
  write_torch(out / "nested.pt", read_torch_value(in / "nested.pt"));
  for (const auto& entry : std::filesystem::directory_iterator(in)) {
    const std::string file = entry.path().filename(), prefix = "optimizer_";
    if (!file.starts_with(prefix)) continue;
    const std::string name = file.substr(prefix.size(), file.find_first_of("_.", prefix.size()) - prefix.size());
    const optim::StateDict saved = optimizer_state_from_torch(read_torch_value(entry.path()).at("optimizer"));
    write_torch(out / file, optimizer_state_to_torch(saved, name));
  }
} catch (const Error& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
