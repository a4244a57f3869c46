// Thousands of damaged files for every reader, the same in every run: a value or an Error, never anything else.
#include <gtest/gtest.h>
#include <volta/error.h>

#include "fuzz/readers/readers.h"

namespace volta {
namespace {

class IoFuzz : public testing::TestWithParam<fuzz::Reader> {};

TEST_P(IoFuzz, SurvivesDamagedFiles) {
  const fuzz::Reader& reader = GetParam();
  const std::vector<std::string> seeds = reader.seeds();
  ASSERT_FALSE(seeds.empty());
  std::mt19937_64 random(7);
  const size_t rounds = 4000;
  size_t well = 0;
  for (const std::string& seed : seeds) {
    ASSERT_NO_THROW(reader.read(seed));
    for (size_t n = 0; n < std::min<size_t>(seed.size(), 300); ++n)
      (void)attempt([&] { reader.read(seed.substr(0, n)); });
  }
  for (size_t i = 0; i < rounds; ++i) {
    const std::string text = fuzz::mutated(seeds[i % seeds.size()], seeds[random() % seeds.size()], random);
    try {
      reader.read(text);
      ++well;
    } catch (const Error& e) {
      EXPECT_FALSE(std::string(e.what()).empty());
    } catch (const std::exception& e) {
      FAIL() << "not an Error but " << e.what() << ", round " << i;
    }
  }
  if (reader.name != "text" && reader.name != "tsv") {  // those two refuse next to nothing
    EXPECT_LT(well, rounds);
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, IoFuzz, testing::ValuesIn(fuzz::readers()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace volta
