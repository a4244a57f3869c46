// A device of the tests' own.
#pragma once
#include <volta/device.h>

namespace volta::test {
Device toy_device();

struct ToyTraffic {
  int64_t uploads = 0, downloads = 0, replays = 0;
};
ToyTraffic toy_traffic();  // how often bytes went from and to the host, and recorded steps ran again
}  // namespace volta::test
