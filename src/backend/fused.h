// Whether ops may use the fused loops that a device has.
#pragma once

namespace volta {

// Turned off, every op is composed of the basic loops: so the tests hold each form against the other.
inline thread_local bool use_fused_loops = true;

}  // namespace volta
