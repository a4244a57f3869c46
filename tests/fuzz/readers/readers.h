// The readers of files as functions of their bytes: what the suite, volta_fuzz_readers and libFuzzer feed with damaged files.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace volta::fuzz {

struct Reader {
  std::string name;
  void (*read)(const std::string& bytes);  // returns or throws an Error; whatever else happens is a finding
  std::vector<std::string> (*seeds)();     // good files
};
const std::vector<Reader>& readers();

// `whole` with one to four changes: bits, bytes, numbers of interest, cuts, repeats, pieces of another place and of `other`.
std::string mutated(const std::string& whole, const std::string& other, std::mt19937_64& random);

}  // namespace volta::fuzz
