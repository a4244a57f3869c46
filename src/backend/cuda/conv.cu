// Convolutions on the GPU by cuDNN's graph interface: one operation, for which the library names engines; each form of
// product keeps the plan that was fastest when it was first met. Without the library they are composed of matrix products.
#include "backend/conv.h"

#include <volta/cuda.h>

#include "backend/cuda/element.h"

#ifdef VOLTA_HAVE_CUDNN
#include <map>

#include "backend/cuda/cudnn.h"
#include "core/recording.h"
#include "math/reducers.h"

namespace volta::cuda {
namespace {

constexpr const char* op = "conv";
constexpr double much_work = 1e7;  // multiply-adds from which on engines are timed against each other
constexpr size_t most_plans = 4096, most_candidates = 24;
std::atomic<int64_t> workspace_limit{int64_t(256) << 20};

// The library takes tensors without gaps: contiguous ones, or all with their channels closest together.
Layout dense(const Shape& shape, bool channels_last) {
  return channels_last ? Layout::channels_last(shape) : Layout::contiguous(shape);
}

Descriptor tensor_of(int64_t id, DType dtype, const Layout& layout) {
  const auto numbers = [](const Shape& s) { return std::vector<int64_t>(s.begin(), s.end()); };
  Descriptor d = cudnn_tensor(id, cudnn_type(dtype), numbers(layout.shape), numbers(layout.strides));
  d.finalize();
  return d;
}

// What a plan depends on.
struct Form {
  ConvPiece piece;
  DType dtype;
  bool channels_last, tf32;
  int64_t limit;  // of the workspace
  std::array<int64_t, 4> counts;
  std::array<std::array<int64_t, 6>, ConvGeometry::space> axes;
  auto operator<=>(const Form&) const = default;

  Form(const ConvCall& c, bool in_channels_last)
      : piece(c.piece),
        dtype(c.piece == ConvPiece::forward ? c.x.dtype : c.y.dtype),
        channels_last(in_channels_last),
        tf32(allows_tf32()),
        limit(workspace_limit.load(std::memory_order_relaxed)),
        counts{c.geometry.batch, c.geometry.in_channels, c.geometry.out_channels, c.geometry.groups} {
    for (size_t i = 0; i < axes.size(); ++i) {
      const ConvAxis& a = c.geometry.axes[i];
      axes[i] = {a.input, a.kernel, a.output, a.stride, a.padding, a.dilation};
    }
  }
};

// What must be added behind an axis so that it has as many outputs as it is said to have: as much as in front where that
// will do. Nothing where the library cannot express it.
std::optional<int64_t> padding_behind(const ConvAxis& a) {
  const int64_t least = (a.output - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.input - a.padding;
  const int64_t most = least + a.stride - 1;
  if (most < 0) return {};
  return a.padding >= least && a.padding <= most ? a.padding : std::max<int64_t>(least, 0);
}

// The operation as a graph of one node. Tensors: 0 is x, 1 is w, 2 is y.
CudnnGraph graph_of(cudnnHandle_t handle, const ConvCall& call, const Form& form) {
  CudnnGraph graph;
  auto& parts = graph.parts;
  const ConvGeometry& g = call.geometry;
  const bool flat = g.axes[0].input == 1 && g.axes[0].kernel == 1 && g.axes[0].output == 1 && g.axes[0].padding == 0;
  Shape x{g.batch, g.in_channels}, w{g.out_channels, g.in_channels / g.groups}, y{g.batch, g.out_channels};
  std::vector<int64_t> stride, dilation, before, behind;
  for (int i = flat ? 1 : 0; i < ConvGeometry::space; ++i) {
    const ConvAxis& a = g.axes[i];
    x.push_back(a.input), w.push_back(a.kernel), y.push_back(a.output);
    stride.push_back(a.stride), dilation.push_back(a.dilation), before.push_back(a.padding);
    behind.push_back(*padding_behind(a));
  }
  for (const Shape& shape : {x, w, y})
    parts.push_back(tensor_of(int64_t(parts.size()), form.dtype, dense(shape, form.channels_last)));
  Descriptor conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t(stride.size()));
  conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, stride);
  conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilation);
  conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, before);
  conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, behind);
  conv.finalize();

  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
  };
  static constexpr Names names[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const Names& n = names[size_t(call.piece)];
  Descriptor node(n.type);
  node.set(n.conv, conv);
  node.set(n.x, parts[0]), node.set(n.w, parts[1]), node.set(n.y, parts[2]);
  node.set(n.alpha, CUDNN_TYPE_FLOAT, 1.0f), node.set(n.beta, CUDNN_TYPE_FLOAT, 0.0f);
  node.finalize();
  graph.nodes.push_back(std::move(node));
  parts.push_back(std::move(conv));
  graph.finalize(handle);
  return graph;
}

// f32 means f32: engines that round inputs to fewer bits are left out, unless TF32 is allowed.
bool is_exact(const Descriptor& config, const Form& form) {
  const auto notes = notes_of<cudnnBackendNumericalNote_t>(config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                           CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  for (const auto note : notes) {
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
    if (form.dtype == f32 && !form.tf32 &&
        (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
      return false;
  }
  return true;
}
// Such engines take up to seconds to be made.
bool is_compiled_late(const Descriptor& config) {
  const auto notes = notes_of<cudnnBackendBehaviorNote_t>(config, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                          CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes.end();
}

// A plan for the whole batch, or one for an equal part of it that runs `parts` times.
struct Choice {
  CudnnPlan plan;
  int64_t parts = 1;
};

using Plans = std::map<Form, std::optional<Choice>>;  // those made so far, of a device
Plans& plans_on(const Context& c) {
  static Plans* const plans = new Plans[most_devices];
  return plans[c.device];
}

const std::vector<int64_t> ids{0, 1, 2};  // x, w, y

// The elements of x, w and y.
std::array<int64_t, 3> numels_of(const ConvGeometry& g) {
  int64_t inputs = 1;
  for (const ConvAxis& a : g.axes) inputs *= a.input;
  return {g.batch * g.in_channels * inputs, g.out_channels * (g.in_channels / g.groups) * g.taps(),
          g.batch * g.out_channels * g.outputs()};
}

// Memory for x, w and y, on which plans are tried.
struct Trial {
  std::array<Room, 3> rooms;
  std::vector<void*> data;
  Trial(Context& c, const ConvGeometry& g, DType dtype) {
    for (size_t i = 0; i < 3; ++i) {
      const int64_t bytes = numels_of(g)[i] * size_of(dtype);
      rooms[i] = c.memory().take(bytes, op);
      data.push_back(rooms[i]->data);
      check(cudaMemsetAsync(rooms[i]->data, 0, size_t(bytes), c.stream()), op);
    }
  }
};

// The fastest way, found by running each on memory of its own; of little work, the library's favourite. Gradients of
// weights are tried in parts of the batch too where an engine wants more workspace than it may have.
std::optional<Choice> best_choice(Context& c, CudnnHandle& h, const ConvCall& call, const Form& form) {
  const bool timed = call.geometry.work() >= much_work;
  if (timed) Recording::refuse("conv", "this convolution is run for the first time, which chooses its algorithm");
  bool lacks_room = false;
  const auto plans_in_parts = [&](int64_t parts) {
    ConvCall part = call;
    part.geometry.batch /= parts;
    return plans_of(
        h.handle, graph_of(h.handle, part, form), timed ? most_candidates : 1, form.limit,
        [&](const Descriptor& config) { return is_exact(config, form) && !is_compiled_late(config); }, &lacks_room);
  };
  std::vector<CudnnPlan> plans = plans_in_parts(1);
  if (plans.empty()) return {};
  if (!timed || (plans.size() == 1 && !lacks_room)) return Choice{std::move(plans[0])};
  const Trial trial(c, call.geometry, form.dtype);
  std::optional<Choice> best;
  float least = 0;
  const auto try_all = [&](std::vector<CudnnPlan> candidates, int64_t parts) {
    for (CudnnPlan& plan : candidates) {
      const std::optional<float> time = time_of(c, h, plan, ids, trial.data, op);
      if (!time || (best && *time * float(parts) >= least)) continue;
      least = *time * float(parts);
      best = Choice{std::move(plan), parts};
    }
  };
  try_all(std::move(plans), 1);
  if (!lacks_room || form.piece != ConvPiece::weight) return best;
  for (const int64_t parts : {4, 16}) {
    ConvGeometry part = call.geometry;
    if (part.batch % parts != 0) continue;
    part.batch /= parts;
    const auto aligned = [&](int64_t n) { return n * size_of(form.dtype) % cudnn_alignment == 0; };
    if (std::ranges::all_of(numels_of(part), aligned)) try_all(plans_in_parts(parts), parts);
  }
  return best;
}

// With the handle's mutex held. Null: the library has nothing for it.
const Choice* choice_of(Context& c, CudnnHandle& h, const ConvCall& call, bool channels_last) {
  const Form form(call, channels_last);
  Plans& plans = plans_on(c);
  auto known = plans.find(form);
  if (known == plans.end()) {
    h.make();
    if (plans.size() >= most_plans) plans.clear();
    known = plans.try_emplace(form, best_choice(c, h, call, form)).first;
  }
  return known->second ? &*known->second : nullptr;
}

// In the order that was asked for, or contiguous where the library has nothing for that.
struct Chosen {
  bool channels_last;
  const Choice* way;
  Chosen(Context& c, CudnnHandle& h, const ConvCall& call)
      : channels_last(call.channels_last), way(choice_of(c, h, call, channels_last)) {
    if (way || !channels_last) return;
    channels_last = false;
    way = choice_of(c, h, call, false);
  }
};

// An operand as the library takes it, dense and aligned: in its own memory, or in a room beside it.
struct Dense {
  const Arg& own;
  Layout layout;
  Room room;
  Dense(Context& c, const Arg& x, bool channels_last) : own(x), layout(dense(x.layout->shape, channels_last)) {
    const bool ordered = channels_last ? x.layout->is_channels_last() : x.layout->is_contiguous();
    if (!ordered || reinterpret_cast<uintptr_t>(x.data) % cudnn_alignment != 0)
      room = c.memory().take(layout.numel() * size_of(x.dtype), op);
  }
  Arg taken() const { return {room ? room->data : own.data, &layout, own.dtype, {}}; }
  void read(Context& c) const {
    if (room) c.copy(taken(), own);
  }
  void write(Context& c) const {
    if (room) c.copy(own, taken());
  }
};

// Runs it on data, which is x, w, y. In parts, each writes a gradient of w of its own, and these are summed.
bool run(Context& c, CudnnHandle& h, const Choice& way, const Dense (&operands)[3], std::vector<void*> data) {
  if (way.parts == 1) return execute(c, h, way.plan, ids, data, op);
  const DType dtype = operands[1].own.dtype;
  const auto bytes = [&](int i) { return operands[i].layout.numel() * size_of(dtype); };
  const Room gradients = c.memory().take(way.parts * bytes(1), op);
  void* const sum = std::exchange(data[1], gradients->data);
  for (int64_t k = 0; k < way.parts; ++k) {
    if (!execute(c, h, way.plan, ids, data, op)) return false;
    const int64_t steps[] = {bytes(0) / way.parts, bytes(1), bytes(2) / way.parts};
    for (size_t i = 0; i < 3; ++i) data[i] = static_cast<char*>(data[i]) + steps[i];
  }
  const Layout parts = Layout::contiguous({way.parts, operands[1].layout.numel()}),
               one = Layout::contiguous({1, operands[1].layout.numel()});
  c.reduce({index_of<reducers::Sum>(Reducers{}),
            f32,
            {sum, &one, dtype, {}},
            {},
            {gradients->data, &parts, dtype, {}},
            1,
            0});
  return true;
}

template <class T> struct AddBias {  // out, bias
  __device__ T load(char* const* p) const {
    using Wide = std::conditional_t<is_half_type<T>, float, T>;
    return convert<T>(read<Wide, T>(p[0]) + read<Wide, T>(p[1]));
  }
  __device__ void store(char* const* p, T x) const { *reinterpret_cast<T*>(p[0]) = x; }
};

void add_bias(Context& c, const Arg& out, const Arg& bias) {
  Shape shape = Shape::filled(out.layout->rank(), 1);
  shape[1] = bias.layout->numel();
  const Layout spread = Layout::contiguous(shape);
  const Arg along{bias.data, &spread, bias.dtype, {}};
  const Operands<2> x(out.layout->shape, {&out, &along});
  if (out.dtype == f32) each(c, op, x, AddBias<float>{});
  else if (out.dtype == f16) each(c, op, x, AddBias<float16>{});
  else each(c, op, x, AddBias<bfloat16>{});
}

}  // namespace

void set_conv_workspace(int64_t bytes) {
  require(bytes >= 0, ErrorKind::argument, "cuda::set_conv_workspace", "a limit of ", bytes, " bytes");
  workspace_limit = bytes;
}

bool Context::offers(const ConvCall& call) const {
  const ConvGeometry& g = call.geometry;
  const DType dtype = call.piece == ConvPiece::forward ? call.x.dtype : call.y.dtype;
  if (dtype == f64 || g.batch == 0 || !cudnn_library().loaded()) return false;
  for (const ConvAxis& a : g.axes)
    for (const int64_t n : {a.input, a.kernel, a.output, a.stride, a.padding, a.dilation})
      if (n >= chunk_limit) return false;
  for (const ConvAxis& a : g.axes)
    if (a.input == 0 || a.output == 0 || !padding_behind(a)) return false;
  auto& self = const_cast<Context&>(*this);  // plans are made when they are asked for
  const OnDevice current(device);
  CudnnHandle& h = CudnnHandle::of(*this);
  const std::lock_guard lock(h.mutex);
  return Chosen(self, h, call).way != nullptr;
}

void Context::conv(const ConvCall& call) {
  const OnDevice current(device);
  const int written = call.piece == ConvPiece::forward ? 2 : call.piece == ConvPiece::input ? 0 : 1;
  {
    CudnnHandle& h = CudnnHandle::of(*this);
    const std::lock_guard lock(h.mutex);
    const Chosen chosen(*this, h, call);
    const Dense operands[] = {{*this, call.x, chosen.channels_last},
                              {*this, call.w, chosen.channels_last},
                              {*this, call.y, chosen.channels_last}};
    std::vector<void*> data;
    for (const Dense& x : operands) {
      if (&x != &operands[written]) x.read(*this);
      data.push_back(x.taken().data);
    }
    require(chosen.way && run(*this, h, *chosen.way, operands, data), ErrorKind::device, op,
            "cuDNN could not run the convolution");
    operands[written].write(*this);
  }
  if (call.bias.data) add_bias(*this, call.piece == ConvPiece::forward ? call.y : call.x, call.bias);
}

}  // namespace volta::cuda

#else

namespace volta::cuda {
void set_conv_workspace(int64_t) {}
bool Context::offers(const ConvCall&) const { return false; }
void Context::conv(const ConvCall&) {}
}  // namespace volta::cuda

#endif
