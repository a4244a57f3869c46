// The state of an optimizer in the form in which PyTorch saves it.
#pragma once
#include <string>

#include <volta/io/torch_file.h>
#include <volta/optim/optimizer.h>

namespace volta {

// What optimizer.state_dict() of PyTorch holds: opt.load_state_dict(optimizer_state_from_torch(read_torch_value("opt.pt"))).
[[nodiscard]] optim::StateDict optimizer_state_from_torch(const TorchValue& value);

// The reverse, for optimizers that PyTorch has: write_torch("opt.pt", optimizer_state_to_torch(opt.state_dict(), opt.name())).
// Settings that are not part of a state here (LBFGS' max_iter, Muon's ns_steps, …) have PyTorch's defaults.
[[nodiscard]] TorchValue optimizer_state_to_torch(const optim::StateDict& state, const std::string& optimizer);

}  // namespace volta
