// Adds two tensors and prints them with Volta; bench/figures times its start-up and reads its memory.
#include <volta/volta.h>

#include <iostream>

#include "resident.h"

int main() {
  volta::Tensor a = volta::tensor({1.0, 2.0, 3.0}), b = volta::tensor({10.0, 20.0, 30.0});
  std::cout << a + b << "\npeak_resident_kib " << bench::peak_resident_kib() << "\n";
}
