// Shows reinforcement learning: a policy learns by REINFORCE to balance a pole on a cart; run `cart_pole [--short]`.
#include <volta/volta.h>

#include <cstdio>
#include <string_view>
#include <vector>

using namespace volta;

namespace {

// Many carts at once, one to a row: position, velocity, angle and angular velocity. Barto, Sutton and Anderson 1983.
class CartPoles {
 public:
  explicit CartPoles(int64_t carts) : state_(uniform({carts, 4}, -0.05, 0.05)) {}

  const Tensor& state() const { return state_; }
  // Pushes each cart to the left (0) or to the right (1), and lets a fiftieth of a second pass.
  void push(const Tensor& action) {
    const double gravity = 9.8, pole = 0.1, half_length = 0.5, mass = 1.1, force = 10, seconds = 0.02;
    const Tensor velocity = state_.select(1, 1), angle = state_.select(1, 2), spin = state_.select(1, 3);
    const Tensor pull = (force * (2 * action - 1) + pole * half_length * spin.square() * sin(angle)) / mass;
    const Tensor turn =
        (gravity * sin(angle) - cos(angle) * pull) / (half_length * (4.0 / 3 - pole * cos(angle).square() / mass));
    const Tensor drive = pull - pole * half_length * turn * cos(angle) / mass;
    state_ = state_ + seconds * stack({velocity, drive, spin, turn}, 1);
  }
  // Within the track, and the pole within 12 degrees.
  Tensor standing() const { return (state_.select(1, 0).abs() < 2.4) & (state_.select(1, 2).abs() < 0.2095); }

 private:
  Tensor state_;
};

struct Policy {
  nn::Linear hidden{4, 32}, out{32, 2};
  Tensor operator()(const Tensor& state) const { return out(tanh(hidden(state))); }
};

// What happened to all carts: states [time, carts, 4], actions and whether each still stood [time, carts].
struct Episode {
  Tensor states, actions, alive;
};

Episode play(const Policy& policy, int64_t carts, int64_t limit) {
  const NoGrad off;
  CartPoles game(carts);
  std::vector<Tensor> states, actions, alive;
  Tensor standing = ones({carts}, {.dtype = boolean});
  while (int64_t(states.size()) < limit && standing.any().item<bool>()) {
    states.push_back(game.state());
    actions.push_back(multinomial(softmax(policy(game.state()), -1), 1).squeeze(1));
    alive.push_back(standing.to(f32));
    game.push(actions.back().to(f32));
    standing = standing & game.standing();
  }
  return {stack(states), stack(actions), stack(alive)};
}

// Actions followed by much reward become likelier. A step's reward is to stand; what counts is the reward to come.
Tensor policy_loss(const Policy& policy, const Episode& e, double discount) {
  Tensor to_come = zeros_like(e.alive), sum = zeros({e.alive.size(1)});
  for (int64_t t = e.alive.size(0) - 1; t >= 0; --t) {
    sum = e.alive[t] + discount * sum;
    to_come[t] = sum;
  }
  const Tensor mean = (to_come * e.alive).sum() / e.alive.sum();
  const Tensor advantage = (to_come - mean) * e.alive / to_come.std();
  const Tensor chosen = log_softmax(policy(e.states), -1).gather(-1, e.actions.unsqueeze(-1)).squeeze(-1);
  return -(chosen * advantage).sum() / e.alive.sum();
}

}  // namespace

int main(int count, char** arguments) {
  int rounds = 80;
  int64_t limit = 500;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") rounds = 40, limit = 200;

  manual_seed(1);
  Policy policy;
  optim::Adam optimizer(parameters(policy), {.lr = 2e-2});
  double first = 0, last = 0;
  for (int round = 1; round <= rounds; ++round) {
    const Episode episode = play(policy, 32, limit);
    last = episode.alive.sum(0).mean().item<double>();
    if (round == 1) first = last;
    if (round % (rounds / 8) == 0) std::printf("round %2d  the poles stand for %.1f steps\n", round, last);
    optimizer.zero_grad();
    policy_loss(policy, episode, 0.99).backward();
    optimizer.step();
  }
  std::printf("%.1f steps became %.1f of at most %lld\n", first, last, static_cast<long long>(limit));
  return last > 4 * first ? 0 : 1;
}
