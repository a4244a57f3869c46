// Generator: a counter-based random stream. The same seed gives the same numbers on any device and thread count.
#pragma once
#include <cstdint>

namespace volta {

class Generator {
 public:
  struct State {
    uint64_t seed = 0, offset = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  State state() const;
  void set_state(const State& state);
  void manual_seed(uint64_t seed);
  // Reserves `counters` blocks of the stream for one call; thread-safe.
  State take(uint64_t counters);

 private:
  State state_;
};

Generator& default_generator();
void manual_seed(uint64_t seed);  // of the default generator: governs everything random

}  // namespace volta
