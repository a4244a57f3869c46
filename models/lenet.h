// LeNet-5 of LeCun et al. 1998, with ReLU and max pooling as it is trained today.
#pragma once
#include <volta/volta.h>

namespace volta::models {

struct LeNetConfig {
  int64_t channels = 1, classes = 10;
};

// models::LeNet5 net; net(images) for [n, 1, 28, 28].
struct LeNet5 {
  LeNetConfig config;
  nn::Conv2d conv1{config.channels, 6, 5, {.padding = 2}}, conv2{6, 16, 5};
  nn::MaxPool2d pool{2};
  nn::Linear fc1{400, 120}, fc2{120, 84}, fc3{84, config.classes};

  Tensor operator()(Tensor x) const {
    x = pool(relu(conv1(x)));
    x = pool(relu(conv2(x)));
    return fc3(relu(fc2(relu(fc1(x.flatten(1))))));
  }
};

}  // namespace volta::models
