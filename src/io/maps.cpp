// Ready maps: where the published names and layouts differ from those of the models in models/.
#include <volta/io/state_map.h>

namespace volta::maps {

// models/resnet.h has torchvision's names; files of data-parallel training carry a prefix.
StateMap resnet() { return StateMap().strip_prefix("module."); }

// The Hub's files hold the weights of GPT-2's Conv1D layers as [in, out], the masks of attention as buffers, and the last
// layer, which is the embedding.
StateMap gpt2() {
  return StateMap()
      .strip_prefix("transformer.")
      .exclude("h.*.attn.bias")
      .exclude("h.*.attn.masked_bias")
      .exclude("lm_head.weight")
      .transpose_pattern("h.*.c_attn.weight")
      .transpose_pattern("h.*.c_proj.weight")
      .transpose_pattern("h.*.c_fc.weight");
}

// Early files call the two numbers of a LayerNorm gamma and beta; models with a head have one more level of names.
StateMap bert() {
  return StateMap()
      .strip_prefix("bert.")
      .rename_pattern("*.LayerNorm.gamma", "*.LayerNorm.weight")
      .rename_pattern("*.LayerNorm.beta", "*.LayerNorm.bias")
      .exclude("cls.*")
      .exclude("classifier.*")
      .exclude("qa_outputs.*")
      .exclude("embeddings.position_ids")
      .exclude("embeddings.token_type_ids");
}

}  // namespace volta::maps
