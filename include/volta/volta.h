// All of Volta: #include <volta/volta.h>
#pragma once
#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/custom_op.h>
#include <volta/device.h>
#include <volta/dtype.h>
#include <volta/dtype_info.h>
#include <volta/error.h>
#include <volta/nn.h>
#include <volta/ops.h>
#include <volta/optim.h>
#include <volta/print.h>
#include <volta/random.h>
#include <volta/sizes.h>
#include <volta/tensor.h>
#include <volta/threads.h>
#include <volta/train.h>
