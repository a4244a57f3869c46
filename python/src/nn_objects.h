// Optimizers and schedules as arguments and results of the generated table.
#pragma once
#include <array>
#include <functional>
#include <memory>

#include <volta/optim.h>

#include "objects.h"

namespace volta::python {

template <> optim::Params Arguments::get<optim::Params>(int i);
template <> optim::Optimizer* Arguments::get<optim::Optimizer*>(int i);
template <> std::vector<double> Arguments::get<std::vector<double>>(int i);
template <> std::array<double, 3> Arguments::get<std::array<double, 3>>(int i);
template <> std::pair<std::optional<double>, double> Arguments::get<std::pair<std::optional<double>, double>>(int i);
template <> std::function<double(double)> Arguments::get<std::function<double(double)>>(int i);

PyObject* wrap(std::unique_ptr<optim::Optimizer> o);
PyObject* wrap(std::unique_ptr<optim::Scheduler> o);
PyObject* wrap(std::unique_ptr<optim::ReduceLROnPlateau> o);

void define_nn(nb::module_& m);

}  // namespace volta::python
