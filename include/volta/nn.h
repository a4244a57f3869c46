// Layers, containers and the functions over models.
#pragma once
#include <volta/nn/init.h>
#include <volta/nn/linear.h>
#include <volta/nn/model.h>
