#!/usr/bin/env python3
"""Small random models of every family, and their logits by Hugging Face's transformers in float32.

Needs the Python packages torch, transformers and gguf. Writes NAME.gguf and NAME.json beside itself; run it again only when a
family is added: another version of torch draws other numbers.
"""
import json
import pathlib
import sys

import gguf
import numpy
import torch
import transformers

HERE = pathlib.Path(__file__).parent
VOCABULARY = 96
LENGTH = 150  # beyond a segment of attention, the windows, and the contexts that scaled positions were trained with
ROWS = [0, 1, 15, 16, 40, 63, 64, 100, 127, 128, 149]

SHARED = dict(
    vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, attn_implementation="eager",
    pad_token_id=None, bos_token_id=None, eos_token_id=None)


def rope(kind, theta, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


LLAMA3 = rope("llama3", 10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = rope("yarn", 10000.0, factor=4.0, original_max_position_embeddings=64)

MODELS = {
    "llama": ("llama", transformers.LlamaConfig(**SHARED, rope_parameters=rope("default", 10000.0))),
    "llama3": ("llama", transformers.LlamaConfig(**SHARED, rope_parameters=LLAMA3)),
    "llama_linear": ("llama", transformers.LlamaConfig(**SHARED, rope_parameters=rope("linear", 10000.0, factor=4.0))),
    "llama_yarn": ("llama", transformers.LlamaConfig(**SHARED, rope_parameters=YARN)),
    "qwen2": ("qwen2", transformers.Qwen2Config(
        **SHARED, tie_word_embeddings=True, rope_parameters=rope("default", 1000000.0))),
    "qwen3": ("qwen3", transformers.Qwen3Config(
        **SHARED, head_dim=32, tie_word_embeddings=False, rope_parameters=rope("default", 1000000.0))),
    "qwen3_yarn": ("qwen3", transformers.Qwen3Config(
        **(SHARED | dict(max_position_embeddings=4096)), head_dim=32, tie_word_embeddings=True,
        rope_parameters=YARN | dict(original_max_position_embeddings=1024))),
    # Seven layers: five with a window, one without, one more; scores scaled by another number than the heads give.
    "gemma3": ("gemma3", transformers.Gemma3TextConfig(**(SHARED | dict(
        hidden_size=48, intermediate_size=64, num_hidden_layers=7, head_dim=16, query_pre_attn_scalar=12, sliding_window=37,
        rope_parameters={"full_attention": rope("linear", 1000000.0, factor=8.0),
                         "sliding_attention": rope("default", 10000.0)})))),
    "gemma3_capped": ("gemma3", transformers.Gemma3TextConfig(**(SHARED | dict(
        hidden_size=48, intermediate_size=64, num_hidden_layers=6, head_dim=16, query_pre_attn_scalar=16, sliding_window=20,
        final_logit_softcapping=8.0, attn_logit_softcapping=3.0,
        rope_parameters={"full_attention": rope("default", 1000000.0),
                         "sliding_attention": rope("default", 10000.0)})))),
}
CLASSES = {"llama": transformers.LlamaForCausalLM, "qwen2": transformers.Qwen2ForCausalLM,
           "qwen3": transformers.Qwen3ForCausalLM, "gemma3": transformers.Gemma3ForCausalLM}

# Names of llama.cpp for those of transformers.
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
NORMS = {"post_attention_layernorm": "ffn_norm"}
GEMMA_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffw_norm"}


def fill(model, seed):
    """Random weights that give logits of a few units, and matrices that half precision holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    norms = 0.0 if isinstance(model.config, transformers.Gemma3TextConfig) else 1.0
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if name.endswith("bias"):
                weight.copy_(noise * 0.5)
            elif weight.dim() == 1:
                weight.copy_(norms + noise * 0.3)
            else:
                size = 0.5 if "embed" in name or "lm_head" in name else 1.2 / weight.shape[1] ** 0.5
                weight.copy_((noise * size).half().float())


def neighbours(weight, heads):
    """Halves of a head to neighbouring pairs, as converters lay the rows of Llama's queries and keys."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def llama3_factors(config):
    """What converters write into rope_freqs.weight: plain frequency over scaled one."""
    plain = 1.0 / config.rope_parameters["rope_theta"] ** (numpy.arange(0, config.head_dim, 2) / config.head_dim)
    scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    return (plain / scaled.double().numpy()).astype(numpy.float32)


def write_metadata(out, arch, config):
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    head = getattr(config, "head_dim", None)
    if head and head * config.num_attention_heads != config.hidden_size:
        out.add_key_length(head)
        out.add_value_length(head)
    positions = config.rope_parameters
    if arch == "gemma3":
        out.add_sliding_window(config.sliding_window)
        if config.query_pre_attn_scalar != head:
            out.add_float32("gemma3.attention.scale", config.query_pre_attn_scalar ** -0.5)
        if config.final_logit_softcapping:
            out.add_final_logit_softcapping(config.final_logit_softcapping)
            out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        positions = positions["full_attention"]
    out.add_rope_freq_base(positions["rope_theta"])
    if positions["rope_type"] in ("linear", "yarn"):
        out.add_string(f"{arch}.rope.scaling.type", positions["rope_type"])
        out.add_rope_scaling_factor(positions["factor"])
    if positions["rope_type"] == "yarn":
        out.add_rope_scaling_orig_ctx_len(positions["original_max_position_embeddings"])


def write_tensors(out, arch, model):
    config = model.config
    parts = NAMES | (GEMMA_NORMS if arch == "gemma3" else NORMS)
    for name, weight in model.named_parameters():
        data = weight.detach().numpy()
        name, kind = name.removeprefix("model.").rsplit(".", 1)
        if name == "embed_tokens":
            name = "token_embd"
        elif name == "norm":
            name = "output_norm"
        elif name == "lm_head":
            name = "output"
        else:
            _, layer, part = name.split(".", 2)
            if arch == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
                data = neighbours(data, config.num_attention_heads if "q_proj" in part else config.num_key_value_heads)
            name = f"blk.{layer}.{parts[part]}"
        if arch == "gemma3" and name.endswith("norm"):
            data = data + 1
        out.add_tensor(f"{name}.{kind}", data.astype(numpy.float16 if data.ndim == 2 else numpy.float32))
    if arch == "llama" and config.rope_parameters["rope_type"] == "llama3":
        out.add_tensor("rope_freqs.weight", llama3_factors(config))


def make(name, arch, config, seed):
    model = CLASSES[arch](config).float().eval()
    fill(model, seed)
    generator = torch.Generator().manual_seed(seed + 1000)
    tokens = torch.randint(0, VOCABULARY, (1, LENGTH), generator=generator)
    # Gemma 3's own code has the cap of scores as an argument that its models leave out.
    cap = getattr(config, "attn_logit_softcapping", None)
    with torch.no_grad():
        logits = model(tokens, use_cache=False, **({"softcap": cap} if cap else {})).logits[0].numpy()

    out = gguf.GGUFWriter(HERE / f"{name}.gguf", arch)
    write_metadata(out, arch, config)
    write_tensors(out, arch, model)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    with open(HERE / f"{name}.json", "w") as file:
        json.dump({"made_by": f"transformers {transformers.__version__}, float32", "tokens": tokens[0].tolist(),
                   "rows": [{"position": row, "logits": [round(float(x), 5) for x in logits[row]]} for row in ROWS]}, file)
        file.write("\n")
    print(f"{name}: logits from {logits.min():.2f} to {logits.max():.2f}")


if __name__ == "__main__":
    for index, (name, (arch, config)) in enumerate(MODELS.items()):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(name, arch, config, index + 1)
