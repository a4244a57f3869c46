// What a call of the oracle is given, and the table of calls.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "oracle/reader.h"

namespace volta::oracle {

using Tensors = std::vector<Tensor>;

struct Given {
  Tensors x;                    // the tensor operands
  std::vector<Scalar> numbers;  // the operands that are numbers
};
using Call = std::function<Tensors(const Given&, const Args&)>;
using Calls = std::map<std::string, Call>;

inline Tensors both(const ValuesIndices& r) { return {r.values, r.indices}; }

}  // namespace volta::oracle
