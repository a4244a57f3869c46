// Options of convolution and of its transpose, and the choice of the algorithm.
#pragma once
#include <volta/conv_algorithm.h>
#include <volta/per_axis.h>
#include <volta/tensor.h>

namespace volta {

enum class ConvPad { valid, same };
constexpr std::array<std::string_view, 2> choice_names(ConvPad) { return {"valid", "same"}; }
// Zeros on both sides of each axis: a number, one for each axis, "valid" (none) or "same" (outputs as many as inputs).
class ConvPadding {
 public:
  ConvPadding(detail::Whole auto all) : sizes_(all) {}
  ConvPadding(std::initializer_list<int64_t> each) : sizes_(each) {}
  ConvPadding(const PerAxis& each) : sizes_(each) {}
  ConvPadding(const char* name) : sizes_(0), name_(name) {}
  ConvPadding(const std::string& name) : sizes_(0), name_(name) {}
  ConvPadding(ConvPad pad) : sizes_(0), name_(choice_names(pad)[size_t(pad)]) {}
  const PerAxis& sizes() const { return sizes_; }
  const std::string& name() const { return name_; }  // empty when numbers were given

 private:
  PerAxis sizes_;
  std::string name_;
};

struct ConvOptions {
  PerAxis stride = 1;
  ConvPadding padding = 0;
  PerAxis dilation = 1;
  Int groups = 1;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;  // of the call and of its gradients
  Int chunk = 0;  // im2col: output pixels unrolled at a time; 0: as many as suit the caches
};
struct ConvTransposeOptions {
  PerAxis stride = 1, padding = 0, output_padding = 0;
  Int groups = 1;
  PerAxis dilation = 1;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;
  Int chunk = 0;
};

// What a convolution of these would use, its choice made: conv_algorithm(x, w, {.padding = 1}). The same function serves
// one, two and three dimensions. Devices without the loop compute tap by tap and answer `direct`.
ConvAlgorithm conv_algorithm(const Tensor& x, const Tensor& weight, const ConvOptions& options = {},
                             const Choice<ConvPiece>& piece = ConvPiece::forward);

// While it lives, this thread's convolutions that ask for nothing else use one algorithm, also in their backward pass:
// { UseConvAlgorithm use(ConvAlgorithm::direct); y = model(x); }
class [[nodiscard]] UseConvAlgorithm {
 public:
  [[nodiscard]] explicit UseConvAlgorithm(const Choice<ConvAlgorithm>& algorithm);
  ~UseConvAlgorithm();
  UseConvAlgorithm(const UseConvAlgorithm&) = delete;
  UseConvAlgorithm& operator=(const UseConvAlgorithm&) = delete;

 private:
  ConvAlgorithm before_;
};

}  // namespace volta
