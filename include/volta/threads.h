// How many threads Volta's CPU loops use, the calling thread included.
#pragma once

namespace volta {

inline constexpr int max_threads = 1024;

// Takes effect with the next parallel loop, also while other threads compute. Throws unless 1 <= n <= max_threads.
void set_num_threads(int n);

// Initially VOLTA_NUM_THREADS if that is a valid count, else the number of processors this process may use.
int get_num_threads();

inline constexpr int max_spin_time = 10'000'000;

// How many microseconds a thread of the pool that has nothing to do looks for the next loop before it sleeps: 0 saves power, more
// begins loops sooner, for a thread that sleeps takes some ten microseconds to wake. Initially VOLTA_SPIN_TIME if that is valid,
// else 100. Where threads are more than processors none looks.
void set_spin_time(int microseconds);
int get_spin_time();

}  // namespace volta
