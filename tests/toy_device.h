// A device of the tests' own.
#pragma once
#include <volta/device.h>

namespace volta::test {
Device toy_device();
}
