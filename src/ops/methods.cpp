// Every op as a function and a method that the op list describes in full.
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace volta {
#include <volta/method_bodies.h>
}  // namespace volta
