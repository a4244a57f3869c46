// What surrounds a training loop: metrics, fit with its callbacks, event files for TensorBoard, the profiler.
#pragma once
#include <volta/train/callbacks.h>
#include <volta/train/fit.h>
#include <volta/train/history.h>
#include <volta/train/metrics.h>
#include <volta/train/profiler.h>
#include <volta/train/summary_writer.h>
