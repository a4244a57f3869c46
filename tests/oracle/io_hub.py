#!/usr/bin/env python3
"""Writes tests/data/io/{gpt2,bert}.safetensors: small models of the Hub's architectures and names, with their outputs as test.*.

    python3 tests/oracle/io_hub.py        # needs torch, transformers and safetensors
"""

import pathlib

import safetensors.torch
import torch
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "io"


def randomized(model):
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    return model.eval()


def write(name, model, outputs):
    state = {key: x.clone() for key, x in model.state_dict().items()}
    safetensors.torch.save_file(state | {f"test.{key}": x.detach() for key, x in outputs.items()}, OUT / name)


def gpt2():
    model = randomized(GPT2LMHeadModel(GPT2Config(vocab_size=17, n_positions=12, n_embd=8, n_layer=2, n_head=2)))
    ids = torch.randint(0, 17, (2, 9))
    write("gpt2.safetensors", model, {"ids": ids, "logits": model(ids).logits})


def bert():
    config = BertConfig(vocab_size=19, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
                        max_position_embeddings=12)
    model = randomized(BertForPreTraining(config))
    ids, types = torch.randint(0, 19, (2, 9)), torch.randint(0, 2, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    out = model.bert(ids, attention_mask=mask, token_type_ids=types)
    write("bert.safetensors", model, {"ids": ids, "mask": mask, "types": types, "hidden": out.last_hidden_state,
                                      "pooled": out.pooler_output})


if __name__ == "__main__":
    torch.manual_seed(0)
    gpt2()
    bert()
