// The scalar mathematics of the formulas: generic, branch-free, the same text for the CPU's vectors and for the device.
#pragma once
#include "volta/scalar/basic.h"
#include "volta/scalar/division.h"
#include "volta/scalar/error_function.h"
#include "volta/scalar/exp_log.h"
#include "volta/scalar/gamma.h"
#include "volta/scalar/hyperbolic.h"
#include "volta/scalar/integer.h"
#include "volta/scalar/power.h"
#include "volta/scalar/trig.h"
