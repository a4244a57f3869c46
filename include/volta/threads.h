// How many threads Volta's CPU loops use, the calling thread included.
#pragma once

namespace volta {

inline constexpr int max_threads = 1024;

// Takes effect with the next parallel loop, also while other threads compute. Throws unless 1 <= n <= max_threads.
void set_num_threads(int n);

// Initially VOLTA_NUM_THREADS if that is a valid count, else the number of processors this process may use.
int get_num_threads();

}  // namespace volta
