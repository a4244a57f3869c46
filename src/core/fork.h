// What a fork of the process does: a child has one thread, and finds no lock held by a thread that it does not have.
#pragma once
#include <mutex>

namespace volta {

// For mutexes of static life: a fork waits until none is held, in any order. Called while static objects are made.
bool fork_waits_for(std::mutex& mutex);
// Called in a child, while those mutexes are held, to replace what belonged to other threads. Must not allocate.
bool fork_renews(void (*renew)());

}  // namespace volta
