"""Makes this folder's checkpoint and logits with transformers (5.24) and torch; neither is needed to use them.

Weights are random but such that every path matters, and are saved as BF16. The logits are transformers', computed in
float64 from the saved weights.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

HERE = Path(__file__).parent
TOKENS = 300

CONFIG = DeepseekV4Config(
    vocab_size=256, hidden_size=64, moe_intermediate_size=32, num_hidden_layers=4, num_attention_heads=4, head_dim=128,
    q_lora_rank=32, n_routed_experts=8, num_experts_per_tok=2, compress_ratios=[0, 4, 128, 4], num_hash_layers=1,
    qk_rope_head_dim=64, sliding_window=32, o_groups=2, o_lora_rank=16, index_n_heads=32, index_head_dim=64,
    index_topk=8, swiglu_limit=2.0, max_position_embeddings=4096,
    rope_scaling={
        "type": "yarn", "factor": 16, "original_max_position_embeddings": 256, "beta_fast": 32, "beta_slow": 1
    },
)  # fmt: skip


def spread(name: str, shape: torch.Size) -> tuple[float, float]:
    """Mean and deviation of a tensor's random values."""
    if "norm" in name:
        return 1, 0.1
    if name.endswith("scale"):
        return 0.7, 0.1
    small = {"sinks": 0.5, "base": 0.3, "hc_base": 0.3, "fn": 0.03, "hc_fn": 0.03, "position_bias": 0.5,
             "e_score_correction_bias": 0.2}  # fmt: skip
    last = name.rpartition(".")[2]
    if last in small:
        return 0, small[last]
    return 0, 1.0 if "embed" in name else 1.5 / shape[-1] ** 0.5


def main() -> None:
    torch.manual_seed(11)
    model = DeepseekV4ForCausalLM(CONFIG).eval()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point() and "inv_freq" not in name:
                mean, deviation = spread(name, tensor.shape)
                tensor.copy_(torch.randn(tensor.shape) * deviation + mean)
            elif name.endswith("tid2eid"):
                tensor.copy_(torch.argsort(torch.rand(tensor.shape[0], 8), dim=1)[:, :2])
    model.to(torch.bfloat16).save_pretrained(HERE)
    (HERE / "generation_config.json").unlink(missing_ok=True)
    # Loaded anew, since the cast has rounded the rotary frequencies as well.
    model = DeepseekV4ForCausalLM.from_pretrained(
        HERE, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager"
    ).eval()
    tokens = np.random.default_rng(4).integers(3, 256, TOKENS)
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens)[None]).logits[0].float().numpy()
    np.savez_compressed(HERE / "logits.npz", tokens=tokens.astype(np.int32), logits=logits)
    print(logits.std(), [path.stat().st_size for path in HERE.iterdir()])


if __name__ == "__main__":
    main()
