// Training: optimizers, schedulers, scaling and clipping of gradients, averages of weights.
#pragma once
#include <volta/optim/algorithms.h>
#include <volta/optim/average.h>
#include <volta/optim/fused_update.h>
#include <volta/optim/grad_scaler.h>
#include <volta/optim/optimizer.h>
#include <volta/optim/schedule.h>
