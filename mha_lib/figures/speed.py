"""How long attention takes, and how much memory: measured once, shown by the book."""

import json
from importlib import resources
from typing import Any


def measured() -> dict[str, Any]:
    """Return what ``make bench BENCH=--save`` measured last.

    Returns
    -------
    result : dict
        ``machine``: date, processor, cores, system, versions of the software, and the names of the
        contenders.  ``sizes`` and ``growth``: one dict for each size, with ``n``, ``d``,
        ``n_heads``, the number of rounds ``n_rounds``, and by contender ``ms``, the median over
        the rounds in milliseconds, ``ratio_half``, the quartiles of the library's time divided by
        the contender's, round by round, and ``mebibytes``, the peak of the memory above the inputs,
        in 2^20 bytes.

    Notes
    -----
    One forward pass in float32, one thread.  ``bench/attention.py`` is the program.

    Examples
    --------
    >>> [row["n"] for row in measured()["sizes"]]
    [32, 128, 512, 1024, 2048, 8192]
    """
    text = resources.files("mha_lib.figures").joinpath("speed.json").read_text(encoding="utf-8")
    return json.loads(text)
