"""What the gallery of heads shows: attention between words; what a head is called, and why."""

import base64

import numpy as np

from bench.heads.probes import FEATURE, WINOGRAD, kinds
from bench.heads.relations import head_index, head_name, word_maps
from bench.heads.sentences import ANTECEDENT

OURS = "our sentences"
FULL = 255  # the number that stands for a weight of 1
SENTENCES = (
    FEATURE,
    "the general visited the queen when he opened the new hospital .",
    "the general visited the queen when they opened the new hospital .",
    *WINOGRAD,
    "the nurse told the engineer that she could stay .",
    "the nurse told the engineer that he could stay .",
    "the athlete hurt her knee , so the coach replaced her .",
    "when she finished the long letter , sarah closed the window .",
    "the goats eat the dry grass because they are hungry .",
    "a long , dull and expensive meeting delayed the new project .",
    "the accordionist played a strange slow waltz .",
    "the price of fresh vegetables rose sharply last summer .",
    "the keys to the wooden cabinet lie on the kitchen table .",
    "the actor whom the critics admired most refused the famous prize .",
    "which book did the professor recommend ?",
    "the police have not yet found the stolen paintings .",
    "the thief , who wore a long grey coat , escaped through a tiny window .",
)
BY_POSITION = {
    "previous": "the word before",
    "next": "the word after",
    "self": "the word itself",
    "[CLS]": "[CLS], the mark at the beginning",
    "[SEP]": "[SEP], the mark at the end",
    "broad": "many words alike",
}


def attention_of(encoder, sentences):
    """Return words and attention, as text, of each sentence: 72 maps of W + 2 rows and columns."""
    words = [sentence.split() for sentence in sentences]
    maps = dict(word_maps(encoder, words))
    return [
        {
            "words": one,
            "attention": base64.b64encode(
                np.rint(maps[i] * FULL).astype(np.uint8).tobytes()
            ).decode("ascii"),
        }
        for i, one in enumerate(words)
    ]


def named_heads(heads):
    """Return for each of the 72 heads what it is called, and the measurements that say so.

    On natural text first, as far as that was measured, then on our sentences.  A head that puts
    more than half of its attention on one place is called after that, one that looks at all words
    nearly alike is broad, and one that was chosen for a relation is called after the relation;
    "holds" says whether it is more than its best offset, for distant pairs too.  Where our
    sentences chose another head than natural text, what that head does on natural text is said
    before.  Most heads have no name.
    """
    texts = {one["name"]: one["positions"] for one in heads["relations"]["natural"][:1]}
    texts[OURS] = heads["positions"]["made up"]
    measures = [[] for _ in range(72)]
    for text, places in texts.items():
        scores = {name: np.array(values) for name, values in places["heads"].items()}
        for head, kind in enumerate(map(str, kinds(scores))):
            if kind:
                measures[head].append(_place(kind, text, places, head))
    made_up, found = heads["relations"]["made up"], set()
    for one in heads["relations"]["natural"]:
        by_pronoun = one.get("pronouns", {}).get("reporting", {})
        ours = {row["relation"]: row["head"] for row in made_up["rows"]}
        for row in one["rows"]:
            # The first treebank that has a relation is the one that is shown.
            if (name := row["relation"]) not in found:
                found.add(name)
                measures[head_index(row["head"])].append(_measure(row, one["name"], by_pronoun))
                if ours[name] != row["head"]:
                    carried = {**row, **one["heads of made-up text"][name]}
                    measures[head_index(ours[name])].append(
                        _measure(carried, one["name"], by_pronoun)
                    )
    for row in made_up["rows"]:
        measures[head_index(row["head"])].append(_measure(row, OURS, made_up["pronouns"]))
    return [{"head": head_name(i), "measures": measures[i]} for i in range(72)]


def _place(kind, text, places, head):
    """Return what a head does by position as a measure."""
    score = "entropy" if kind == "broad" else kind
    return {
        "name": BY_POSITION[kind],
        "measure": "entropy, of the largest" if kind == "broad" else "share of attention",
        "text": text,
        "value": places["heads"][score][head],
        "n": places["n pieces"],
        "even": places["chance"][score],
    }


def _measure(row, text, by_pronoun):
    """Return a row of a table as a measure; that of pronouns also by their kind."""
    measure = {
        "name": row["relation"],
        "measure": "share that is right",
        "text": text,
        "value": row["accuracy"],
        "interval": row["interval"],
        "n": row["n"],
        "offset": row["offset accuracy"],
        "rule": row["rule accuracy"],
        "untrained": round(float(np.mean(row["untrained"])), 3),
        "holds": row["holds"],
    }
    if row["relation"] == ANTECEDENT:
        measure["kinds"] = {
            kind: {"n": found["n"], **found["heads"][row["head"]]}
            for kind, found in by_pronoun.items()
            if row["head"] in found["heads"]
        }
    return measure


def gallery(encoder, heads, sentences=SENTENCES):
    """Return what the widget needs, for these sentences."""
    return {
        "provenance": heads["provenance"],
        "full": FULL,
        "heads": named_heads(heads),
        "sentences": attention_of(encoder, sentences),
    }
