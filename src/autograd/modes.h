// The thread's modes, as the engine asks for them.
#pragma once

namespace volta {
bool grad_enabled() noexcept;
bool anomaly_enabled() noexcept;
}  // namespace volta
