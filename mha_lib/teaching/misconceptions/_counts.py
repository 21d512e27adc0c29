"""Wrong versions of ``count_parameters(d, n_heads)`` and ``count_softmax_entries(n, n_heads)``."""

from functools import partial

from mha_lib.teaching.misconceptions._entry import BUDGET_CHAPTER, Misconception, call, entry

ENTRIES: list[Misconception] = []
_parameters_entry = partial(entry, ENTRIES, "count_parameters")
_scores_entry = partial(entry, ENTRIES, "count_softmax_entries")
_COUNT = (BUDGET_CHAPTER, "Count first")
_GROWS = (BUDGET_CHAPTER, "What grows with h")


@_parameters_entry(
    "the layer counted once for each head",
    "Your code multiplies by the number of heads, as if every head had four (d, d) matrices; the "
    "heads share them, and each has d / h of the columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _layer_times_heads(d, n_heads):
    return 4 * n_heads * d * d


@_parameters_entry(
    "projections of full width for each head",
    "Your code counts three (d, d) projections for every head and W_O once; a head's projections "
    "are only d / h wide, and all heads together have three (d, d) matrices.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _projections_times_heads(d, n_heads):
    return 3 * n_heads * d * d + d * d


@_parameters_entry(
    "W_O not counted",
    "Your code counts the three projections and leaves out W_O, the fourth (d, d) matrix.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=call(0, 1),
    formal=True,
)
def _w_o_not_counted(d, n_heads):
    return 3 * d * d


@_parameters_entry(
    "W_O counted as wide as one head",
    "Your code gives W_O one row for each of the d_k columns of a single head, but it takes in all "
    "heads side by side, h * d_k = d columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _w_o_of_one_head(d, n_heads):
    return 3 * d * d + d // n_heads * d


@_parameters_entry(
    "one head counted for all",
    "Your code counts the matrices of a single head, d by d_k, and forgets that there are h heads.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _one_head_counted(d, n_heads):
    return 4 * d * (d // n_heads)


@_parameters_entry(
    "biases counted",
    "Your code adds a bias of d numbers to each of the four products, as libraries can; the layer "
    "here has w_q, w_k, w_v and w_o and nothing else.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=call(0, 1),
    formal=True,
)
def _biases_counted(d, n_heads):
    return 4 * (d * d + d)


@_scores_entry(
    "one map counted for all heads",
    "Your code counts n * n scores once, but every head makes n rows of n scores of its own.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _one_map(n, n_heads):
    return n * n


@_scores_entry(
    "one score for each token",
    "Your code counts one score for each token of each head, but each token has a whole row of "
    "them, one for every token that it looks at.",
    read=_GROWS,
    hides="with one token",
    hiding_input=call(1, 3),
)
def _one_score_per_token(n, n_heads):
    return n_heads * n


@_scores_entry(
    "the scores divided among the heads",
    "Your code divides the scores by the number of heads, as the width is divided; each head "
    "compares all tokens with all tokens, and the scores grow with h.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _divided_among_heads(n, n_heads):
    return n * n // n_heads


@_scores_entry(
    "heads compared with each other",
    "Your code counts as if the tokens of every head met those of every other, (h * n) squared; a "
    "head compares only its own queries with its own keys.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _heads_compared(n, n_heads):
    return (n_heads * n) ** 2


@_scores_entry(
    "only the causal half counted",
    "Your code counts only the pairs that a causal mask allows; here every token looks at every "
    "token, n * n scores for each head.",
    read=_GROWS,
    hides="with one token",
    hiding_input=call(1, 3),
)
def _causal_half(n, n_heads):
    return n_heads * n * (n + 1) // 2
