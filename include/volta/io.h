// Files: weights in and out, in the formats of others and in our own.
#pragma once
#include <volta/io/checkpoint.h>
#include <volta/io/model_file.h>
#include <volta/io/npy.h>
#include <volta/io/safetensors.h>
#include <volta/io/state_map.h>
#include <volta/io/torch_file.h>
#include <volta/io/torch_optimizer.h>
