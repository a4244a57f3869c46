// expect: needs a const call operator from Tensor to Tensor
#include <volta/volta.h>
using namespace volta;

int main() { return int(nn::Sequential::builder().add("rnn", nn::LSTM(2, 2)).build().size()); }
