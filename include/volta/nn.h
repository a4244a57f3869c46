// Layers, containers and the functions over models.
#pragma once
#include <volta/nn/attention.h>
#include <volta/nn/containers.h>
#include <volta/nn/conv.h>
#include <volta/nn/dropout.h>
#include <volta/nn/embedding.h>
#include <volta/nn/fractional_pool.h>
#include <volta/nn/init.h>
#include <volta/nn/lambda.h>
#include <volta/nn/linear.h>
#include <volta/nn/model.h>
#include <volta/nn/norm.h>
#include <volta/nn/pool.h>
#include <volta/nn/recurrent.h>
#include <volta/nn/reparametrize.h>
#include <volta/nn/resample.h>
#include <volta/nn/transformer.h>
