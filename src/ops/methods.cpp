// The generated functions and methods of all ops.
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace volta {
#include <volta/method_bodies.h>
}  // namespace volta
