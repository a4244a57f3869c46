// taken(x): what x held, so that a test can look at what is left there.
#pragma once
#include <utility>

namespace volta::test {

template <class T> T taken(T& x) { return std::move(x); }

}  // namespace volta::test
