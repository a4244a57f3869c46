// Calls of a backend as data: which memory each reads and writes, and how it is made again.
#pragma once
#include <variant>

#include "backend/attention.h"
#include "backend/backend.h"
#include "backend/conv.h"
#include "backend/norm.h"
#include "backend/pool.h"
#include "backend/recurrent.h"

namespace volta::program {

struct CopyCall {
  Arg out, in;
};
struct IotaCall {
  Arg out;
  Scalar start, step;
};
using Call =
    std::variant<CopyCall, IotaCall, ElementwiseCall, ReduceCall, SoftmaxCall, ScanCall, GatherCall, ScatterCall,
                 SortCall, SearchCall, MatmulCall, ConvCall, PoolCall, NormCall, AttentionCall, RecurrentCall>;

// Calls f(arg, whether the call reads it, whether it writes it) for each.
template <class F> class Operands {
 public:
  explicit Operands(const F& f) : f_(f) {}

  void of(CopyCall& c) { writes(c.out), reads(c.in); }
  void of(IotaCall& c) { writes(c.out); }
  void of(ElementwiseCall& c) {
    writes(c.out);
    for (int i = 0; i < c.inputs; ++i) reads(c.in[i]);
  }
  void of(ReduceCall& c) { writes(c.out, c.indices), reads(c.in); }
  void of(SoftmaxCall& c) { writes(c.out), reads(c.in); }
  void of(ScanCall& c) { writes(c.out, c.indices), reads(c.in); }
  void of(GatherCall& c) { writes(c.out), reads(c.in, c.index); }
  void of(ScatterCall& c) { both(c.out), reads(c.src, c.index); }
  void of(SortCall& c) { writes(c.values, c.indices), reads(c.in); }
  void of(SearchCall& c) { writes(c.out), reads(c.sorted, c.values); }
  void of(MatmulCall& c) {
    if (c.accumulate) both(c.out);
    else writes(c.out);
    reads(c.a, c.b, c.bias);
  }
  void of(ConvCall& c) {
    Arg* const written[] = {&c.y, &c.x, &c.w};
    for (Arg* a : {&c.x, &c.w, &c.y})
      if (a == written[size_t(c.piece)]) writes(*a);
      else reads(*a);
    reads(c.bias, c.added, c.kept);
  }
  void of(PoolCall& c) { writes(c.out, c.indices), reads(c.in); }
  void of(NormCall& c) {
    writes(c.y);
    if (c.given) reads(c.mean, c.var);
    else writes(c.mean, c.var);
    reads(c.x, c.weight, c.bias);
  }
  void of(AttentionCall& c) { writes(c.out, c.logsumexp), reads(c.q, c.k, c.v, c.mask); }
  void of(RecurrentCall& c) {
    both(c.gates);
    writes(c.hidden, c.cells);
    reads(c.x, c.h0, c.c0, c.w_hh, c.w_ih, c.bias);
  }

 private:
  template <class... A> void reads(A&... a) { (f_(a, true, false), ...); }
  template <class... A> void writes(A&... a) { (f_(a, false, true), ...); }
  void both(Arg& a) { f_(a, true, true); }

  const F& f_;
};
template <class F> void each_arg(Call& call, const F& f) {
  std::visit([&](auto& c) { Operands<F>(f).of(c); }, call);
}
// Those that are memory.
template <class F> void each_operand(Call& call, const F& f) {
  each_arg(call, [&](Arg& a, bool reads, bool writes) {
    if (a.data && a.layout && a.layout->numel() > 0) f(a, reads, writes);
  });
}

// Throws unless the indices of a gather or scatter lie in their axis, which ops left unchecked while calls were recorded.
void check_places(const Backend& device, const Call& call);
void run(Backend& device, const Call& call);

}  // namespace volta::program
