// Data sets, transforms, the loader, and readers of files.
#pragma once
#include <volta/data/collate.h>
#include <volta/data/csv.h>
#include <volta/data/dataset.h>
#include <volta/data/loader.h>
#include <volta/data/sampler.h>
#include <volta/data/sets.h>
#include <volta/data/text.h>
#include <volta/data/transforms.h>
#include <volta/data/wav.h>
