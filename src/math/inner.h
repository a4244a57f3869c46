// The framework's own files call its inner names without a prefix; programs that use namespace volta do not see them.
#pragma once

namespace volta {
namespace detail {}
using namespace detail;
}  // namespace volta
