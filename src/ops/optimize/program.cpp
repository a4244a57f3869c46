#include "ops/optimize/program.h"

#include <algorithm>
#include <set>

#include <volta/grad_mode.h>

#include "core/check.h"

namespace volta::program {
namespace {

constexpr const char* op = "optimize";
constexpr int64_t line = 64, page = 4096;

// A stretch of working memory that is in use from one call to another.
struct Stretch {
  Trace::Memory* memory;
  size_t first, last;
  int64_t bytes, offset = 0;
};

// Lays stretches out so that those in use at one time do not meet: the largest first, each as low as it fits. The bytes
// that takes.
int64_t place(std::vector<Stretch*> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](auto* a, auto* b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a->first < b->first; });
  std::vector<const Stretch*> placed;  // by offset
  int64_t end = 0;
  for (Stretch* s : stretches) {
    for (const Stretch* other : placed) {
      if (other->last < s->first || s->last < other->first || other->offset + other->bytes <= s->offset) continue;
      if (s->offset + s->bytes <= other->offset) break;
      s->offset = other->offset + other->bytes;
    }
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), s, [](auto* a, auto* b) { return a->offset < b->offset; }), s);
    end = std::max(end, s->offset + s->bytes);
  }
  return end;
}

// Leaves out calls whose results no other call and no output reads.
void drop_unread(Trace& trace) {
  std::set<const Trace::Memory*> wanted;
  for (const Tensor& y : trace.outputs)
    if (const Trace::Memory* memory = y.defined() ? trace.find(y.impl().storage->data) : nullptr) wanted.insert(memory);
  std::vector<Call> kept;
  for (size_t i = trace.calls.size(); i-- > 0;) {
    bool used = false;
    each_operand(trace.calls[i],
                 [&](Arg& a, bool, bool writes) { used = used || (writes && wanted.contains(&trace.at(a))); });
    if (!used) continue;
    each_operand(trace.calls[i], [&](Arg& a, bool reads, bool) {
      if (reads) wanted.insert(&trace.at(a));
    });
    kept.push_back(trace.calls[i]);
  }
  std::reverse(kept.begin(), kept.end());
  trace.calls = std::move(kept);
}

}  // namespace

Program::Program(std::span<const Tensor> inputs, const Function& f) : inputs_(inputs.size()) {
  const InferenceMode on;
  std::vector<Tensor> own;
  for (const Tensor& x : inputs) own.push_back(x.detach().contiguous().clone());
  Trace trace = record(std::move(own), f);
  for (auto& [impl, source] : trace.sources) sources_.push_back(std::move(source));
  rewrite(trace);
  drop_unread(trace);
  lay_out(trace);
}

void Program::lay_out(Trace& trace) {
  std::map<const Trace::Memory*, int> bases;
  const auto first_result = int(inputs_) + 1;
  for (const Tensor& y : trace.outputs) {
    if (!y.defined()) {
      outputs_.emplace_back();
      continue;
    }
    Trace::Memory* memory = trace.find(y.impl().storage->data);
    Output& output = outputs_.emplace_back(Output{-1, y, layout(y), y.dtype()});
    if (!memory || memory->known) continue;
    if (memory->kind == Trace::Kind::input) {
      output.base = memory->input + 1;
      continue;
    }
    const auto [found, fresh] = bases.emplace(memory, first_result + int(result_bytes_.size()));
    if (fresh) result_bytes_.push_back(memory->storage->bytes);
    output.base = found->second;
  }

  std::map<Trace::Memory*, Stretch> stretches;
  for (size_t i = 0; i < trace.calls.size(); ++i)
    each_operand(trace.calls[i], [&](Arg& a, bool, bool) {
      Trace::Memory& memory = trace.at(a);
      if (memory.known || memory.kind == Trace::Kind::input || bases.contains(&memory)) return;
      const int64_t bytes = (memory.storage->bytes + line - 1) / line * line;
      const auto [found, fresh] = stretches.emplace(&memory, Stretch{&memory, i, i, bytes});
      found->second.last = i;
    });
  std::vector<Stretch*> all;
  for (auto& [memory, stretch] : stretches) {
    // Operands at one place of their pages would wait for each other.
    if (stretch.bytes >= page) stretch.bytes += 5 * line;
    all.push_back(&stretch);
  }
  bytes_ = place(std::move(all));

  for (size_t i = 0; i < trace.calls.size(); ++i) {
    int operand = 0;
    each_operand(trace.calls[i], [&](Arg& a, bool, bool) {
      Trace::Memory& memory = trace.at(a);
      const int64_t offset = static_cast<char*>(a.data) - static_cast<char*>(memory.storage->data);
      const int number = operand++;
      if (memory.kind == Trace::Kind::input) places_.push_back({i, number, memory.input + 1, offset});
      else if (const auto found = bases.find(&memory); found != bases.end())
        places_.push_back({i, number, found->second, offset});
      else if (!memory.known) places_.push_back({i, number, 0, stretches.at(&memory).offset + offset});
      else if (!std::exchange(memory.kept, true)) constants_.push_back(memory.storage);
    });
  }
  for (Output& output : outputs_)
    if (output.base >= 0) output.like = {};
  calls_ = std::move(trace.calls);
  layouts_ = std::move(trace.layouts);
  tables_ = std::move(trace.places);
  factors_ = std::move(trace.factors);
}

bool Program::current() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const Trace::Source& s) {
    return s.tensor.impl().storage == s.storage && s.storage->version.load(std::memory_order_relaxed) == s.version;
  });
}

std::unique_ptr<Program::Frame> Program::make_frame() const {
  auto frame = std::make_unique<Frame>();
  frame->calls = calls_;
  frame->memory = backend(Device()).allocate(bytes_, Device(), op);
  auto place = places_.begin();
  for (size_t i = 0; i < calls_.size(); ++i) {
    int operand = 0;
    each_operand(frame->calls[i], [&](Arg& a, bool, bool) {
      const int number = operand++;
      if (place == places_.end() || place->call != i || place->operand != number) return;
      if (place->base == 0) a.data = static_cast<char*>(frame->memory->data) + place->offset;
      else frame->moving.emplace_back(&a, &*place);
      ++place;
    });
  }
  return frame;
}

// A frame for one run, given back at its end.
class Program::Borrowed {
 public:
  explicit Borrowed(const Program& owner) : owner_(owner) {
    {
      const std::lock_guard lock(owner.mutex_);
      if (!owner.idle_.empty()) {
        frame_ = std::move(owner.idle_.back());
        owner.idle_.pop_back();
      }
    }
    if (frame_) return;
    frame_ = owner.make_frame();
    const std::lock_guard lock(owner.mutex_);
    owner.idle_.reserve(++owner.frames_);
  }
  ~Borrowed() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(frame_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Frame& operator*() const { return *frame_; }

 private:
  const Program& owner_;
  std::unique_ptr<Frame> frame_;
};

std::vector<Tensor> Program::operator()(std::span<const Tensor> inputs) const {
  const InferenceMode on;
  Backend& device = backend(Device());
  std::vector<Tensor> given;
  std::vector<void*> bases = {nullptr};
  for (const Tensor& x : inputs) bases.push_back(address(given.emplace_back(x.detach().contiguous())));
  std::vector<IntrusivePtr<Storage>> results;
  for (const int64_t bytes : result_bytes_)
    bases.push_back(results.emplace_back(device.allocate(bytes, Device(), op))->data);
  {
    const Borrowed frame(*this);
    for (const auto& [arg, place] : (*frame).moving)
      arg->data = static_cast<char*>(bases[size_t(place->base)]) + place->offset;
    for (const Call& call : (*frame).calls) {
      check_places(device, call);
      run(device, call);
    }
  }
  std::vector<Tensor> outputs;
  for (const Output& o : outputs_) {
    if (o.base < 0) {
      outputs.push_back(o.like.defined() ? o.like.clone() : Tensor());
    } else if (size_t(o.base) <= inputs_) {
      const Tensor& x = given[size_t(o.base) - 1];
      Layout place = o.place;
      place.offset += layout(x).offset;
      outputs.push_back(from_storage(x.impl().storage, place, o.dtype));
    } else {
      outputs.push_back(from_storage(results[size_t(o.base) - inputs_ - 1], o.place, o.dtype));
    }
  }
  return outputs;
}

}  // namespace volta::program
