// Convolution as three products over (x, w, y) whose gradients are one another, so that it differentiates any number of times.
#include <algorithm>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "backend/conv.h"
#include "core/checked_arithmetic.h"
#include "core/room.h"
#include "graph/record.h"
#include "ops/channels_last.h"
#include "ops/check.h"
#include "ops/conv.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

constexpr int space = ConvGeometry::space;
thread_local constinit ConvAlgorithm preferred = ConvAlgorithm::automatic;

// forward(x, w), input(w, y) or weight(x, y), by the device's loop if it has one; no graph.
Tensor run(const Convolution& c, ConvPiece piece, const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  const Shape shape = piece == ConvPiece::forward ? c.y_shape() : piece == ConvPiece::input ? c.x_shape() : c.w_shape();
  checked_numel(shape, c.op);
  const auto with_bias = [&](const Tensor& y) {
    return bias.defined() ? y + bias.reshape(joined({-1}, Shape::filled(c.rank, 1))) : y;
  };
  const NoGrad off;
  if (shape.numel() == 0 || a.numel() == 0 || b.numel() == 0)
    return with_bias(zeros(shape, {.dtype = a.dtype(), .device = a.device()}));
  const bool last = keeps_channels_last(a) || keeps_channels_last(b);
  const auto ordered = [&](const Tensor& w) { return last ? channels_last(w) : w.contiguous(); };
  const Tensor first = piece == ConvPiece::input ? ordered(a) : a,
               second = piece == ConvPiece::forward ? ordered(b) : b;
  ConvCall call{piece, c.algorithm, c.chunk, {}, {}, {}, {}, c.g, last};
  Arg* const places[3][3] = {{&call.y, &call.x, &call.w}, {&call.x, &call.w, &call.y}, {&call.w, &call.x, &call.y}};
  *places[int(piece)][1] = arg(first);
  *places[int(piece)][2] = arg(second);
  const Tensor row = bias.defined() ? bias.contiguous() : bias;
  if (row.defined()) call.bias = arg(row);
  if (offered(a.device(), call)) {
    const bool out_last = last && (piece != ConvPiece::weight || c.channels_last_weight);
    const Tensor out = allocate(shape, out_last, a.dtype(), a.device(), c.op);
    *places[int(piece)][0] = arg(out);
    within_memory(c.op, [&] { backend(a.device()).conv(call); });
    return out;
  }
  const bool half = is_half(a.dtype());  // summed over taps in f32
  return with_bias(convolve_by_taps(c, piece, half ? a.to(f32) : a, half ? b.to(f32) : b)).to(a.dtype());
}

Tensor weight_piece(const Convolution& c, const Tensor& x, const Tensor& y);
Tensor input_piece(const Convolution& c, const Tensor& w, const Tensor& y, const Tensor& bias = {});

Tensor bias_gradient(const Tensor& g) {
  std::vector<int64_t> axes = {0};
  for (int64_t i = 2; i < g.dim(); ++i) axes.push_back(i);
  return g.sum(axes);
}

Tensor forward_piece(const Convolution& c, const Tensor& x, const Tensor& w, const Tensor& bias = {}) {
  const Tensor y = run(c, ConvPiece::forward, x, w, bias);
  if (!any_needs_grad(x, w, bias)) return y;
  return record(c.op, y, {x, w, bias},
                [=, sx = save(x, needs_grad(w)), sw = save(w, needs_grad(x))](const Tensor& g, Gradients& d) {
                  if (d.needs(0)) d[0] = input_piece(c, d.take(sw), g);
                  if (d.needs(1)) d[1] = weight_piece(c, d.take(sx), g);
                  if (d.needs(2)) d[2] = bias_gradient(g);
                });
}

Tensor input_piece(const Convolution& c, const Tensor& w, const Tensor& y, const Tensor& bias) {
  const Tensor x = run(c, ConvPiece::input, w, y, bias);
  if (!any_needs_grad(w, y, bias)) return x;
  return record(c.op, x, {w, y, bias},
                [=, sw = save(w, needs_grad(y)), sy = save(y, needs_grad(w))](const Tensor& g, Gradients& d) {
                  if (d.needs(0)) d[0] = weight_piece(c, g, d.take(sy));
                  if (d.needs(1)) d[1] = forward_piece(c, g, d.take(sw));
                  if (d.needs(2)) d[2] = bias_gradient(g);
                });
}

Tensor weight_piece(const Convolution& c, const Tensor& x, const Tensor& y) {
  const Tensor w = run(c, ConvPiece::weight, x, y);
  if (!any_needs_grad(x, y)) return w;
  return record(c.op, w, {x, y},
                [=, sx = save(x, needs_grad(y)), sy = save(y, needs_grad(x))](const Tensor& g, Gradients& d) {
                  if (d.needs(0)) d[0] = input_piece(c, g, d.take(sy));
                  if (d.needs(1)) d[1] = forward_piece(c, d.take(sx), g);
                });
}

void check_operands(const char* op, int rank, const Tensor& x, const Tensor& w, const Tensor& bias, int64_t groups,
                    bool transposed) {
  require(x.checked(op).dim() == rank + 1 || x.dim() == rank + 2, ErrorKind::shape, op, "needs an input of ", rank + 1,
          " axes [channels, ...] or ", rank + 2, " axes [batch, channels, ...], got ", x);
  require(w.checked(op).dim() == rank + 2, ErrorKind::shape, op, "needs a weight of ", rank + 2, " axes, got ", w);
  require(is_floating(x.dtype()) && x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
          ErrorKind::dtype, op, "needs one floating dtype, got an input of ", x.dtype(), ", a weight of ", w.dtype(),
          bias.defined() ? " and a bias of " : "", bias.defined() ? name(bias.dtype()) : "");
  common_device(x, w, op);
  if (bias.defined()) common_device(x, bias, op);
  require(groups > 0, ErrorKind::argument, op, "groups must be positive, not ", groups);
  require(w.numel() > 0, ErrorKind::shape, op, "an empty weight ", w);
  const int64_t channels = x.size(x.dim() - rank - 1), first = w.size(0), second = w.size(1);
  const int64_t all = (Checked(second) * groups).value(op), in = transposed ? first : all,
                out = transposed ? all : first;
  require(first % groups == 0, ErrorKind::shape, op, groups, " groups do not divide the ", first,
          " channels of weight ", w);
  require(channels == in, ErrorKind::shape, op, "input ", x, " has ", channels, " channels where weight ", w, " with ",
          groups, " groups needs ", in);
  require(!bias.defined() || bias.shape() == Shape{out}, ErrorKind::shape, op, "the bias must have shape [", out,
          "], not ", bias.defined() ? bias.shape() : Shape());
}

void require_at_least(const Shape& sizes, int64_t least, const char* op, const char* what) {
  for (const int64_t n : sizes)
    require(n >= least, ErrorKind::argument, op, what, " ", sizes, " has an entry below ", least);
}

ConvGeometry geometry_of(const Tensor& x, const Tensor& w, int rank, int64_t groups, const Shape& stride,
                         const Shape& dilation, const char* op) {
  require_at_least(stride, 1, op, "stride");
  require_at_least(dilation, 1, op, "dilation");
  ConvGeometry g{x.dim() == rank + 2 ? x.size(0) : 1, w.size(1) * groups, w.size(0), groups, {}};
  for (int i = 0; i < rank; ++i) {
    ConvAxis& a = g.axes[space - rank + i];
    a.kernel = w.size(2 + i);
    a.stride = stride[i];
    a.dilation = dilation[i];
  }
  return g;
}

// The most elements of an axis with its padding: their bytes, and sums of a few such numbers, fit 64 bits.
constexpr int64_t most_elements = int64_t(1) << 58;

// What an axis, its padding and the kernel's reach add up to, less a few.
int64_t extent(Checked size, const char* op, const Tensor& x) {
  require(size.fits() && size.value_or(0) <= most_elements, ErrorKind::shape, op, "input ", x,
          " with this stride, padding and dilation has an axis of too many elements");
  return size.value_or(0);
}

ConvAlgorithm wanted(ConvAlgorithm asked) { return asked == ConvAlgorithm::automatic ? preferred : asked; }

void check_chunk(int64_t chunk, const char* op) {
  require(chunk >= 0, ErrorKind::argument, op, "chunk must not be negative, got ", chunk);
}

Convolution convolution_of(const char* op, int rank, const Tensor& x, const Tensor& w, const Tensor& bias,
                           const ConvOptions& o) {
  check_operands(op, rank, x, w, bias, o.groups, false);
  check_chunk(o.chunk, op);
  const Shape stride = o.stride.of(rank, op, "stride"), padding = o.padding.sizes().of(rank, op, "padding");
  const bool same = o.padding.name() == "same";
  require(same || o.padding.name().empty() || o.padding.name() == "valid", ErrorKind::argument, op, "padding '",
          o.padding.name(), "' is neither \"same\" nor \"valid\"");
  require_at_least(padding, 0, op, "padding");
  ConvGeometry g = geometry_of(x, w, rank, o.groups, stride, o.dilation.of(rank, op, "dilation"), op);
  for (int i = 0; i < rank; ++i) {
    ConvAxis& a = g.axes[space - rank + i];
    const int64_t reach = extent(Checked(a.kernel - 1) * a.dilation, op, x);
    require(!same || a.stride == 1, ErrorKind::argument, op, "padding \"same\" needs a stride of 1, not ", stride);
    a.input = x.size(x.dim() - rank + i);
    a.padding = same ? reach / 2 : padding[i];
    const int64_t padded = extent(a.input + (same ? Checked(reach) : 2 * Checked(a.padding)), op, x);
    require(padded > reach, ErrorKind::shape, op, "the kernel of weight ", w, " spans ", reach + 1,
            " elements of an axis where input ", x, " has ", padded, " with its padding");
    a.output = (padded - reach - 1) / a.stride + 1;
    a.stride = std::min(a.stride, padded);  // larger ones, of one output, make no difference
    if (a.kernel == 1) a.dilation = 1;
  }
  return {op, rank, g, wanted(o.algorithm.of(op, "algorithm")), o.chunk, keeps_channels_last(w)};
}

template <class F> Tensor batched(const Tensor& x, int rank, F f) {
  return x.dim() == rank + 2 ? f(x) : f(x.unsqueeze(0)).squeeze(0);
}

// A kernel can reach much further than there is anything to see, which the loops would stage as zeros: then it is narrowed to
// the taps that see something, and the input to what they see, from element `skipped` on.
struct Near {
  Convolution c;
  Tensor w;
  int64_t skipped[space] = {};
  bool changed = false;

  Near(const Convolution& convolution, const Tensor& weight) : c(convolution), w(weight) {
    for (int i = 0; i < c.rank; ++i) {
      ConvAxis& a = c.g.axes[space - c.rank + i];
      constexpr int64_t much = 64;
      const int64_t along = (a.output - 1) * a.stride;
      if ((a.kernel - 1) * a.dilation / much <= a.input + along) continue;
      const int64_t before = a.padding - along, first = before > 0 ? (before - 1) / a.dilation + 1 : 0;
      const int64_t last = std::min(a.kernel - 1, (a.padding + a.input - 1) / a.dilation);
      const int64_t start = a.padding - first * a.dilation;
      changed = true;
      skipped[i] = first > last ? a.input : std::max<int64_t>(0, -start);
      a.kernel = std::max<int64_t>(1, last - first + 1);
      w = w.narrow(2 + i, first > last ? 0 : first, a.kernel);
      a.padding = std::max<int64_t>(0, start);
      a.input -= skipped[i];
      if (a.kernel == 1) a.dilation = 1;
    }
  }
};

Tensor convolve(const char* op, int rank, const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& o) {
  const Convolution c = convolution_of(op, rank, x, w, bias, o);
  checked_numel(c.y_shape(), op);
  return batched(x, rank, [&](const Tensor& in) {
    const Near near(c, w);
    Tensor seen = in;
    for (int i = 0; i < rank; ++i)
      if (near.skipped[i] > 0) seen = seen.narrow(2 + i, near.skipped[i], in.size(2 + i) - near.skipped[i]);
    return forward_piece(near.c, seen, near.w, bias);
  });
}

Tensor convolve_transposed(const char* op, int rank, const Tensor& x, const Tensor& w, const Tensor& bias,
                           const ConvTransposeOptions& o) {
  check_operands(op, rank, x, w, bias, o.groups, true);
  check_chunk(o.chunk, op);
  const Shape padding = o.padding.of(rank, op, "padding"), more = o.output_padding.of(rank, op, "output_padding");
  require_at_least(padding, 0, op, "padding");
  require_at_least(more, 0, op, "output_padding");
  ConvGeometry g =
      geometry_of(x, w, rank, o.groups, o.stride.of(rank, op, "stride"), o.dilation.of(rank, op, "dilation"), op);
  for (int i = 0; i < rank; ++i) {
    ConvAxis& a = g.axes[space - rank + i];
    require(more[i] < std::max(a.stride, a.dilation), ErrorKind::argument, op, "output_padding ", more,
            " must be smaller than the stride or the dilation");
    a.output = x.size(x.dim() - rank + i);
    a.padding = padding[i];
    const int64_t whole =
        extent((Checked(a.output) - 1) * a.stride + Checked(a.kernel - 1) * a.dilation + more[i] + 1, op, x);
    extent(2 * Checked(a.padding), op, x);
    a.input = whole - 2 * a.padding;
    if (a.output == 1) a.stride = std::min(a.stride, std::max<int64_t>(1, whole));
    if (a.kernel == 1) a.dilation = 1;
    require(a.output > 0 && a.input > 0, ErrorKind::shape, op, "input ", x, " with weight ", w, " and padding ",
            padding, " leaves an output of ", a.input, " elements along an axis");
  }
  const Convolution c{op, rank, g, wanted(o.algorithm.of(op, "algorithm")), o.chunk, keeps_channels_last(w)};
  checked_numel(c.x_shape(), op);
  return batched(x, rank, [&](const Tensor& in) {
    const Near near(c, w);
    if (!near.changed) return input_piece(c, w, in, bias);
    std::vector<int64_t> sides;
    for (int i = rank - 1; i >= 0; --i) sides.insert(sides.end(), {near.skipped[i], 0});
    const Tensor y = pad(input_piece(near.c, near.w, in), sides);
    return bias.defined() ? y + bias.reshape(joined({-1}, Shape::filled(rank, 1))) : y;
  });
}

}  // namespace

const char* name(ConvAlgorithm algorithm) {
  constexpr const char* names[] = {"automatic", "direct", "im2col", "implicit_gemm", "winograd"};
  return names[size_t(algorithm)];
}

UseConvAlgorithm::UseConvAlgorithm(const Choice<ConvAlgorithm>& algorithm) : before_(preferred) {
  preferred = algorithm.of("UseConvAlgorithm", "algorithm");
}
UseConvAlgorithm::~UseConvAlgorithm() { preferred = before_; }

ConvAlgorithm conv_algorithm(const Tensor& x, const Tensor& w, const ConvOptions& options,
                             const Choice<ConvPiece>& piece) {
  const char* op = "conv_algorithm";
  const int rank = int(w.checked(op).dim()) - 2;
  require(rank >= 1 && rank <= space, ErrorKind::shape, op, "needs a weight of 3 to 5 axes, got ", w);
  const Convolution c = convolution_of(op, rank, x, w, {}, options);
  return backend(x.device()).algorithm({piece.of(op, "piece"), c.algorithm, c.chunk, arg(x), arg(w), {}, {}, c.g});
}

Tensor Plain::conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return convolve("conv1d", 1, x, weight, bias, options);
}
Tensor Plain::conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return convolve("conv2d", 2, x, weight, bias, options);
}
Tensor Plain::conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return convolve("conv3d", 3, x, weight, bias, options);
}
Tensor Plain::conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const ConvTransposeOptions& options) {
  return convolve_transposed("conv_transpose1d", 1, x, weight, bias, options);
}
Tensor Plain::conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const ConvTransposeOptions& options) {
  return convolve_transposed("conv_transpose2d", 2, x, weight, bias, options);
}
Tensor Plain::conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const ConvTransposeOptions& options) {
  return convolve_transposed("conv_transpose3d", 3, x, weight, bias, options);
}

}  // namespace volta
