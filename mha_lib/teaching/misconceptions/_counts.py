"""Wrong versions of ``count_parameters(d, n_heads)`` and ``count_softmax_entries(n, n_heads)``."""

from functools import partial

from mha_lib.teaching.misconceptions._entry import (
    BUDGET_CHAPTER,
    Misconception,
    call,
    entry_of_part,
)

ENTRIES: list[Misconception] = []
_COUNT = (BUDGET_CHAPTER, "Count first")
_GROWS = (BUDGET_CHAPTER, "What grows with h")


def _three(d, n_heads):
    return 3 * d * d


def _one(d, n_heads):
    return d * d


def _none(d, n_heads):
    return 0


def build_parameters(*, projections=_three, w_o=_one, biases=_none):
    """Return a count of parameters with these wrong parts."""

    def count_parameters(d, n_heads):
        return projections(d, n_heads) + w_o(d, n_heads) + biases(d, n_heads)

    return count_parameters


def _of_each_head(scores, n_heads):
    return n_heads * scores


def _all_tokens(n):
    return n * n


def build_entries(*, heads=_of_each_head, pairs=_all_tokens):
    """Return a count of softmax entries with these wrong parts."""

    def count_softmax_entries(n, n_heads):
        return heads(pairs(n), n_heads)

    return count_softmax_entries


_parameters_entry = partial(entry_of_part, ENTRIES, "count_parameters", build_parameters)
_scores_entry = partial(entry_of_part, ENTRIES, "count_softmax_entries", build_entries)


@_parameters_entry(
    "projections",
    "the layer counted once for each head",
    "h doubles and d stays: how wide is each head then?",
    "Your code multiplies by the number of heads, as if every head had four (d, d) matrices; the "
    "heads share them, and each has d / h of the columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
    besides={"w_o": lambda d, n_heads: n_heads * d * d},
)
def _layer_times_heads(d, n_heads):
    return 3 * n_heads * d * d


@_parameters_entry(
    "projections",
    "projections of full width for each head",
    "How many columns does the projection of one head have?",
    "Your code counts three (d, d) projections for every head and W_O once; a head's projections "
    "are only d / h wide, and all heads together have three (d, d) matrices.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _projections_times_heads(d, n_heads):
    return 3 * n_heads * d * d


@_parameters_entry(
    "w_o",
    "W_O not counted",
    "How many matrices does the layer have, and which of them comes last?",
    "Your code counts the three projections and leaves out W_O, the fourth (d, d) matrix.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=call(0, 1),
    formal=True,
)
def _w_o_not_counted(d, n_heads):
    return 0


@_parameters_entry(
    "w_o",
    "W_O counted as wide as one head",
    "What is multiplied by W_O: one head, or all of them side by side?",
    "Your code gives W_O one row for each of the d_k columns of a single head, but it takes in all "
    "heads side by side, d columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
)
def _w_o_of_one_head(d, n_heads):
    return d // n_heads * d


@_parameters_entry(
    "projections",
    "one head counted for all",
    "How many heads does your count hold?",
    "Your code counts the matrices of a single head, d by d_k, and forgets that there are h heads.",
    read=_COUNT,
    hides="with one head",
    hiding_input=call(6, 1),
    besides={"w_o": lambda d, n_heads: d * (d // n_heads)},
)
def _one_head_counted(d, n_heads):
    return 3 * d * (d // n_heads)


@_parameters_entry(
    "biases",
    "biases counted",
    "Which of the numbers that you count are in none of the four matrices?",
    "Your code adds a bias of d numbers to each of the four products, as libraries can; the layer "
    "here has w_q, w_k, w_v and w_o and nothing else.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=call(0, 1),
    formal=True,
)
def _biases_counted(d, n_heads):
    return 4 * d


@_scores_entry(
    "heads",
    "one map counted for all heads",
    "How many rows of weights does one token have if there are h heads?",
    "Your code counts n * n scores once, but every head makes n rows of n scores of its own.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _one_map(scores, n_heads):
    return scores


@_scores_entry(
    "pairs",
    "one score for each token",
    "How many keys does one query of one head look at?",
    "Your code counts one score for each token of each head, but each token has a whole row of "
    "them, one for every token that it looks at.",
    read=_GROWS,
    hides="with one token",
    hiding_input=call(1, 3),
)
def _one_score_per_token(n):
    return n


@_scores_entry(
    "heads",
    "the scores divided among the heads",
    "The width is divided among the heads: do they share out the tokens, too?",
    "Your code divides the scores by the number of heads, as the width is divided; each head "
    "compares all tokens with all tokens, and the scores grow with h.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _divided_among_heads(scores, n_heads):
    return scores // n_heads


@_scores_entry(
    "heads",
    "heads compared with each other",
    "Does a query of head 1 ever meet a key of head 2?",
    "Your code counts as if the tokens of every head met those of every other, (h * n) squared; a "
    "head compares only its own queries with its own keys.",
    read=_GROWS,
    hides="with one head",
    hiding_input=call(5, 1),
)
def _heads_compared(scores, n_heads):
    return n_heads**2 * scores


@_scores_entry(
    "pairs",
    "only the causal half counted",
    "Which tokens may a token look at where there is no mask?",
    "Your code counts only the pairs that a causal mask allows; here every token looks at every "
    "token, n * n scores for each head.",
    read=_GROWS,
    hides="with one token",
    hiding_input=call(1, 3),
)
def _causal_half(n):
    return n * (n + 1) // 2
