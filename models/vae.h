// Variational autoencoder of Kingma and Welling 2013 with one hidden layer on either side.
#pragma once
#include <volta/volta.h>

namespace volta::models {

struct VAEConfig {
  int64_t input = 784, hidden = 400, latent = 20;
};

// models::VAE net; auto out = net(images.flatten(1)); vae_loss(out, images.flatten(1)).backward();
struct VAE {
  struct Output {
    Tensor reconstruction, mean, log_variance;  // the reconstruction as logits
  };
  VAEConfig config;
  nn::Linear encoder{config.input, config.hidden};
  nn::Linear mean{config.hidden, config.latent}, log_variance{config.hidden, config.latent};
  nn::Linear decoder{config.latent, config.hidden}, out{config.hidden, config.input};

  Tensor decode(const Tensor& z) const { return out(relu(decoder(z))); }
  Output operator()(const Tensor& x) const {
    const Tensor h = relu(encoder(x)), m = mean(h), v = log_variance(h);
    return {decode(m + randn_like(m) * exp(0.5 * v)), m, v};
  }
};

// The negative evidence lower bound, by sample; pixels lie in [0, 1].
inline Tensor vae_loss(const VAE::Output& output, const Tensor& x) {
  const Tensor likelihood = binary_cross_entropy_with_logits(output.reconstruction, x, {.reduction = Reduce::sum});
  const Tensor divergence = gaussian_kl(output.mean, output.log_variance, {.reduction = Reduce::sum});
  return (likelihood + divergence) / double(x.size(0));
}

}  // namespace volta::models
