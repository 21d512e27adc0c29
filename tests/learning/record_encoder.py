"""Record what PyTorch computes, for `test_encoder.py` to compare with.

    pip install torch==2.13.0 transformers==5.24.0 tokenizers safetensors
    python -m tests.learning.record_encoder

Writes `tiny_bert.npz`, a small BERT with random weights, its inputs and its outputs, and
`minilm.json`, some of the outputs of all-MiniLM-L6-v2 (`make weights`).
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TINY, MINILM = HERE / "tiny_bert.npz", HERE / "minilm.json"
N_KEPT = 199  # of each output of the large model, evenly spaced
SENTENCES = (
    "the general visited the queen when she opened the new hospital .",
    "Hello",
    "Zoë didn't see the naïve café-owner's “résumé”... 北京 🙂 [SEP] antidisestablishmentarianism",
    "the cat sat on the mat . " * 60,
)


def outputs(model, ids):
    """Return hidden states and attention weights, (..., n, d) and (..., L, h, n, n)."""
    import torch

    with torch.no_grad():
        found = model(torch.tensor(ids), output_attentions=True)
    return found.last_hidden_state.numpy(), np.stack([a.numpy() for a in found.attentions], 1)


def record_tiny(made_by):
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=23, hidden_size=15, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=11, max_position_embeddings=17, type_vocab_size=2,
        layer_norm_eps=1e-12, hidden_act="gelu", attn_implementation="eager",
    )  # fmt: skip
    model = BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than usual, so that every term counts
            parameter.normal_(std=0.7)
    ids = np.random.default_rng(0).integers(0, 23, (5, 7))
    hidden, weights = outputs(model, ids)
    tensors = {name: t.numpy() for name, t in model.state_dict().items() if "pooler" not in name}
    tensors = {f"tensor {name}": t for name, t in tensors.items() if t.dtype == np.float32}
    np.savez_compressed(
        TINY, ids=ids, hidden=hidden, weights=weights, made_by=json.dumps(made_by), **tensors
    )


def record_minilm(made_by):
    from transformers import BertModel

    from mha_lib.learning.encoder import Encoder
    from mha_lib.learning.weights import FILES, weights_folder

    model = BertModel.from_pretrained(weights_folder(), attn_implementation="eager").eval()
    encoder = Encoder.load()
    sentences = []
    for sentence in SENTENCES:
        pieces = encoder.tokens(sentence)
        hidden, weights = outputs(model, pieces.ids[None])
        mean = hidden[0].mean(axis=0)
        sentences.append(
            {
                "sentence": sentence,
                "pieces": pieces.pieces,
                "hidden": some(hidden).tolist(),
                "weights": some(weights).tolist(),
                "embedding": some(mean / np.linalg.norm(mean)).tolist(),
            }
        )
    content = {"made by": made_by, "sha256": FILES, "sentences": sentences}
    MINILM.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def some(array):
    """Return some of the numbers of an array, from beginning to end."""
    return array.ravel()[:: max(array.size // N_KEPT, 1)]


if __name__ == "__main__":
    import torch
    import transformers

    made_by = {"torch": torch.__version__, "transformers": transformers.__version__}
    record_tiny(made_by)
    record_minilm(made_by)
