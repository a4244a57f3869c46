// Adds two tensors and prints them with LibTorch; bench/figures times its start-up and reads its memory.
#include <torch/torch.h>

#include <iostream>

#include "resident.h"

int main() {
  torch::Tensor a = torch::tensor({1.0, 2.0, 3.0}), b = torch::tensor({10.0, 20.0, 30.0});
  std::cout << a + b << "\npeak_resident_kib " << bench::peak_resident_kib() << "\n";
}
