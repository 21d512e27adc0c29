"""Checks of a student's functions, and the mistakes that they know.

`check_softmax` and its like say how much of a function is right and which idea is behind a wrong
answer; `CATALOGUE` holds the wrong functions that they compare with, and `effect` says how large
such a mistake is.
"""

from mha_lib.teaching.checks import (
    check_attention,
    check_budget,
    check_masks,
    check_merge_heads,
    check_multi_head_attention,
    check_softmax,
    check_split_heads,
    prepare,
)
from mha_lib.teaching.effects import (
    Effect,
    EffectTable,
    draw,
    effect,
    effect_table,
    hidden_error,
    measure,
    situations,
)
from mha_lib.teaching.misconceptions import CATALOGUE, Misconception, built_with
from mha_lib.teaching.results import CaseResult, CheckResult
from mha_lib.teaching.steps import right_function
from mha_lib.teaching.tasks import (
    Comparison,
    check_memory,
    check_mended,
    check_predictions,
    check_reading,
)

__all__ = [
    "CATALOGUE",
    "CaseResult",
    "CheckResult",
    "Comparison",
    "Effect",
    "EffectTable",
    "Misconception",
    "built_with",
    "check_attention",
    "check_budget",
    "check_masks",
    "check_memory",
    "check_mended",
    "check_merge_heads",
    "check_multi_head_attention",
    "check_predictions",
    "check_reading",
    "check_softmax",
    "check_split_heads",
    "draw",
    "effect",
    "effect_table",
    "hidden_error",
    "measure",
    "prepare",
    "right_function",
    "situations",
]
