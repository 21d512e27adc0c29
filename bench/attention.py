"""Measure one forward pass of multi-head attention beside other implementations.

Needs PyTorch, and takes onnxruntime along where it is installed; ``make bench`` fetches both into
an environment of its own.  All get the same float32 numbers and one thread, and run in turn, in
another order each round, so that whatever else the machine does slows all of them.  A round counts
with the median of a program's runs.  Memory is the peak of a process of its own, above what it
holds when the inputs are there.  ``--save`` writes what the book shows.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

from mha_lib import multi_head_attention, split_heads
from mha_lib._blocked import BLOCK, KEYS

SIZES = [  # n, d, h
    (32, 64, 4), (128, 512, 8), (512, 512, 8), (1024, 512, 8), (2048, 768, 12), (8192, 512, 8),
]  # fmt: skip
GROWTH = [(n, 512, 8) for n in (256, 512, 1024, 2048, 4096)] + [
    (1024, 512, h) for h in (1, 2, 4, 16)
]
DATA = Path(__file__).resolve().parent.parent / "mha_lib" / "figures" / "speed.json"
MEBIBYTE = 2**20


def ours(x, w_q, w_k, w_v, w_o, n_heads):
    return lambda: multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads)


def with_weights(x, w_q, w_k, w_v, w_o, n_heads):
    """Return our plain computation, which holds all weights."""
    return lambda: multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, return_weights=True)[0]


def softmax(z):
    """Return what the source document's function of this name returns, in its own two lines."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def document(x, w_q, w_k, w_v, w_o, n_heads, root=np.sqrt):
    """Return the loop over heads line by line as the source document writes it.

    Which arrays live at the same time depends on those lines: none is left out or put together.
    """

    def run():
        _, d = x.shape
        d_k = d // n_heads
        q, k, v = x @ w_q, x @ w_k, x @ w_v
        heads = []
        for i in range(n_heads):
            sl = slice(i * d_k, (i + 1) * d_k)
            scores = q[:, sl] @ k[:, sl].T / root(d_k)
            heads.append(softmax(scores) @ v[:, sl])
        return np.concatenate(heads, axis=-1) @ w_o

    return run


def document_in_float32(*arrays_and_heads):
    """Return the same function with a root that is a Python float: the arrays stay float32."""
    return document(*arrays_and_heads, root=math.sqrt)


def torch_sdpa(x, w_q, w_k, w_v, w_o, n_heads):
    """Return PyTorch's fused attention between the same projections."""
    import torch

    torch.set_num_threads(1)
    x, w_q, w_k, w_v, w_o = (torch.from_numpy(a) for a in (x, w_q, w_k, w_v, w_o))
    n, d = x.shape

    def run():
        q, k, v = (
            (x @ w).view(n, n_heads, d // n_heads).transpose(0, 1)[None] for w in (w_q, w_k, w_v)
        )
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]
        return (heads.transpose(0, 1).reshape(n, d) @ w_o).numpy()

    return run


def torch_layer(x, w_q, w_k, w_v, w_o, n_heads):
    """Return PyTorch's ``nn.MultiheadAttention`` with the same weights."""
    import torch

    torch.set_num_threads(1)
    d = x.shape[1]
    layer = torch.nn.MultiheadAttention(d, n_heads, bias=False, batch_first=True).eval()
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.from_numpy(np.concatenate([w_q.T, w_k.T, w_v.T])))
        layer.out_proj.weight.copy_(torch.from_numpy(w_o.T.copy()))
    x = torch.from_numpy(x)[None]

    def run():
        with torch.inference_mode():
            return layer(x, x, x, need_weights=False)[0][0].numpy()

    return run


def onnx_runtime(x, w_q, w_k, w_v, w_o, n_heads):
    """Return onnxruntime with its fused operator for attention."""
    import onnxruntime
    from onnx import TensorProto, helper

    n, d = x.shape
    names = ("w_qkv", "bias", "w_o")
    arrays = (np.concatenate([w_q, w_k, w_v], axis=1), np.zeros(3 * d, np.float32), w_o)
    graph = helper.make_graph(
        [
            helper.make_node(
                "Attention", ["x", "w_qkv", "bias"], ["heads"],
                domain="com.microsoft", num_heads=n_heads,
            ),
            helper.make_node("MatMul", ["heads", "w_o"], ["out"]),
        ],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, n, d])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, n, d])],
        [
            helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.tobytes(), raw=True)
            for name, array in zip(names, arrays, strict=True)
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x": x[None]})[0][0]


def products_and_exp(x, w_q, w_k, w_v, w_o, n_heads):
    """Return what the library's blocks cannot leave out: their matrix products and exp.

    What comes out is no attention; its time is about the least that ours can be.  n is at most a
    block, or some whole blocks.
    """
    q, k, v = (np.ascontiguousarray(split_heads(x @ w, n_heads)) for w in (w_q, w_k, w_v))
    q /= math.sqrt(q.shape[-1])
    scores = np.empty((min(BLOCK, len(x)), min(KEYS, len(x))), np.float32)

    def run():
        for w in (w_q, w_k, w_v, w_o):
            x @ w
        for head in range(n_heads):
            for start in range(0, len(x), BLOCK):
                queries = q[head, start : start + BLOCK]
                for first in range(0, len(x), KEYS):
                    seen = slice(first, first + KEYS)
                    np.matmul(queries, k[head, seen].T, out=scores)
                    np.exp(scores, out=scores)
                    scores @ v[head, seen]

    return run


CONTENDERS = {
    "PyTorch SDPA": torch_sdpa,
    "mha_lib": ours,
    "the document's loop": document,
    "the loop, all in float32": document_in_float32,
    "PyTorch nn.MultiheadAttention": torch_layer,
    "onnxruntime": onnx_runtime,
}
OURS = {"mha_lib": ours, "mha_lib, all weights": with_weights}
FLOOR = "products and exp alone"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write what the book shows")
    parser.add_argument("--memory", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        name, *size = options.memory
        print(peak_memory(name, *map(int, size)))
        return
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1 first: everybody gets one thread")
    made = {name: make for name, make in CONTENDERS.items() if is_there(name)}
    result = {"machine": machine(made)}
    result["sizes"] = [measured(made, *size, {FLOOR: products_and_exp}) for size in SIZES]
    result["growth"] = [measured(OURS, *size) for size in GROWTH]
    show(result)
    if options.save:
        DATA.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def is_there(name):
    """Return whether what a contender needs is installed."""
    try:
        CONTENDERS[name](*inputs(4, 8), 2)
    except ImportError as error:
        print(f"{name}: left out, {error}")
        return False
    return True


def inputs(n, d):
    """Return x and four projections, the same for everybody."""
    rng = np.random.default_rng([n, d])
    x = rng.normal(size=(n, d)).astype(np.float32)
    scale = 1 / math.sqrt(d)
    return x, *((scale * rng.normal(size=(d, d))).astype(np.float32) for _ in range(4))


def measured(made, n, d, n_heads, only_timed=None):
    """Return milliseconds and mebibytes of everybody for one size."""
    runs = {name: make(*inputs(n, d), n_heads) for name, make in made.items()}
    expected = runs["mha_lib"]()
    for name, run in runs.items():
        np.testing.assert_allclose(run(), expected, atol=2e-4, err_msg=name)
    runs |= {name: make(*inputs(n, d), n_heads) for name, make in (only_timed or {}).items()}
    first = {name: milliseconds(run) for name, run in runs.items()}
    slowest = max(first.values())
    # The slowest runs once in a round, the others up to four times: more runs in the same time.
    plan = [name for name in runs for _ in range(min(4, int(slowest / first[name])))]
    rounds = {name: [] for name in runs}
    order = np.random.default_rng(0)
    until = time.perf_counter() + (15 if n < 1024 else 60)
    while len(rounds["mha_lib"]) < 9 or (
        time.perf_counter() < until and len(rounds["mha_lib"]) < 200
    ):
        times = {name: [] for name in runs}
        for name in order.permutation(plan):
            times[name].append(milliseconds(runs[name]))
        for name, each in times.items():
            rounds[name].append(statistics.median(each))
    return {
        "n": n, "d": d, "n_heads": n_heads,
        "n_rounds": len(rounds["mha_lib"]),
        "ms": {name: round(statistics.median(each), 3) for name, each in rounds.items()},
        "ratio_half": {
            name: middle_half(rounds["mha_lib"], each)
            for name, each in rounds.items() if name != "mha_lib"
        },
        "mebibytes": {name: memory_of(name, n, d, n_heads) for name in made},
    }  # fmt: skip


def milliseconds(run):
    """Return how long one run takes."""
    began = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - began)


def middle_half(ours, others):
    """Return the first and the third quartile of the ratios of two contenders, round by round."""
    ratios = [our / other for our, other in zip(ours, others, strict=True)]
    first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
    return [round(first, 3), round(third, 3)]


def memory_of(name, *size):
    """Return the peak memory of one call, measured in a process of its own."""
    command = [sys.executable, __file__, "--memory", name, *map(str, size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return float(done.stdout)


def peak_memory(name, n, d, n_heads):
    """Return the mebibytes that one call takes above the inputs; needs Linux."""
    make = (CONTENDERS | OURS)[name]
    make(*inputs(8, 16), 2)()  # what is loaded once does not count
    run = make(*inputs(n, d), n_heads)
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # begin to look for the peak here
    before = _status("VmRSS")
    run()
    return round((_status("VmHWM") - before) / MEBIBYTE, 1)


def _status(field):
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def machine(made):
    """Return what the numbers depend on."""
    versions = {"Python": platform.python_version(), "NumPy": np.__version__}
    for name in ("torch", "onnxruntime"):
        if name in sys.modules:
            versions[name] = sys.modules[name].__version__
    cores = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    model = [line.split(":")[1].strip() for line in cores if line.startswith("model name")]
    return {
        "date": date.today().isoformat(),
        "processor": model[0] if model else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "versions": versions,
        "contenders": list(made),
    }


def show(result):
    """Print the tables."""
    names = result["machine"]["contenders"]
    print(result["machine"])
    for what, form, columns in (
        ("ms", "{:.2f}", [*names, FLOOR]), ("mebibytes", "{:.1f}", names),
    ):  # fmt: skip
        base = "PyTorch SDPA" if what == "ms" and "PyTorch SDPA" in names else None
        print(f"\n{what}{', as a ratio to ' + base if base else ''}")
        print(f"| n, d, h | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        for row in result["sizes"]:
            numbers = [row[what][name] / (row[what][base] if base else 1) for name in columns]
            size = f"{row['n']}, {row['d']}, {row['n_heads']}"
            print(f"| {size} | {' | '.join(form.format(number) for number in numbers)} |")


if __name__ == "__main__":
    main()
