// What surrounds a training loop: metrics, fit with its callbacks, event files for TensorBoard, the profiler.
#pragma once
#include <volta/train/metrics.h>
