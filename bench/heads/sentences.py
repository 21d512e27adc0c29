"""Sentences with what grammar says of them, read from CoNLL-U, and the relations asked about."""

import gzip
import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import conllu

NOUNS = {"NOUN", "PROPN"}
NAMES = NOUNS | {"PRON"}
PRONOUNS = set(
    "he she it they him her them his their its hers himself herself itself themselves".split()
)
ANTECEDENT = "pronoun → antecedent"
LENGTHS = range(5, 41)  # words; shorter ones ask nothing, longer ones are mostly lists


@dataclass(frozen=True)
class Sentence:
    """Words, their classes, and for each relation the pairs (word, words that would be right)."""

    words: list
    tags: list
    pairs: dict


@dataclass(frozen=True)
class Relation:
    """Which dependents count, whether we go from them to their head or back, and a simple rule.

    The rule takes the nearest word of some classes after the query (step 1) or before it (-1).
    """

    labels: tuple
    up: bool
    step: int
    classes: frozenset
    rule: str
    dependent: frozenset = frozenset()
    head: frozenset = frozenset()

    def holds(self, tag, label, head_tag):
        """Return whether a dependent with this tag and label counts."""
        return (
            label in self.labels
            and (not self.dependent or tag in self.dependent)
            and (not self.head or head_tag in self.head)
        )


VERB = frozenset({"VERB"})
RELATIONS = {
    "object → verb": Relation(("obj",), True, -1, VERB, "nearest verb before"),
    "subject → verb": Relation(("nsubj",), True, 1, VERB, "nearest verb after", head=VERB),
    "verb → subject": Relation(
        ("nsubj",), False, -1, frozenset(NAMES), "nearest noun or pronoun before", head=VERB
    ),
    "determiner → noun": Relation(("det",), True, 1, frozenset(NOUNS), "nearest noun after"),
    "adjective → noun": Relation(("amod",), True, 1, frozenset(NOUNS), "nearest noun after"),
    "preposition → noun": Relation(
        ("case",), True, 1, frozenset(NAMES), "nearest noun or pronoun after",
        dependent=frozenset({"ADP"}),
    ),
    "auxiliary → verb": Relation(
        ("aux", "aux:pass"), True, 1, frozenset({"VERB", "NOUN", "ADJ"}),
        "nearest verb, noun or adjective after",
    ),
}  # fmt: skip
ANTECEDENT_RULE = "nearest noun before"


def read_sentences(path):
    """Return the sentences of a file in CoNLL-U, compressed or not, with 5 to 40 words each.

    Words are the lines with a plain number: of a contraction its parts, not the whole, and nothing
    that was only added for the grammar (empty nodes).
    """
    path = Path(path)
    opened = gzip.open if path.suffix == ".gz" else open
    found = []
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for tokens in conllu.parse_incr(file):
                words = [token for token in tokens if isinstance(token["id"], int)]
                if len(words) in LENGTHS:
                    found.append(_sentence(words))
    except (conllu.exceptions.ParseException, UnicodeError, EOFError, KeyError) as error:
        raise ValueError(
            f"{path} is not in CoNLL-U, or cut short ({error!r}): name a file of ten columns, as "
            f"universaldependencies.org/format describes them"
        ) from None
    if not found:
        raise ValueError(f"{path} has no sentence of 5 to 40 words: name a file in CoNLL-U")
    return found


def sha256(path):
    """Return the SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _sentence(tokens):
    place = {token["id"]: i for i, token in enumerate(tokens)}
    tags = [token["upos"] for token in tokens]
    heads = [place.get(token["head"]) for token in tokens]
    pairs = {}
    for name, relation in RELATIONS.items():
        right = defaultdict(set)
        for i, (token, head) in enumerate(zip(tokens, heads, strict=True)):
            if head is not None and relation.holds(tags[i], token["deprel"], tags[head]):
                query, target = (i, head) if relation.up else (head, i)
                right[query].add(target)
        pairs[name] = sorted(right.items())
    pairs[ANTECEDENT] = _antecedents(tokens, tags, heads, place)
    return Sentence([token["form"] for token in tokens], tags, pairs)


def _antecedents(tokens, tags, heads, place):
    """Return pronouns and where in the sentence the same thing was named.

    Either MISC says ``Antecedent=number``, or ``Entity=`` brackets the mentions of each thing, as
    in the GUM corpus.  Of a mention of several words the one counts that its others hang on.
    """
    pairs = []
    mentions = _mentions(tokens)
    for i, token in enumerate(tokens):
        misc = token["misc"] or {}
        if "Antecedent" in misc:
            pairs.append((i, {place[int(misc["Antecedent"])]}))
        elif tags[i] == "PRON" and token["form"].lower() in PRONOUNS:
            things = {thing for thing, first, last in mentions if first == last == i}
            earlier = {
                word
                for thing, first, last in mentions
                if thing in things and last < i
                for word in range(first, last + 1)
                if heads[word] is None or not first <= heads[word] <= last
            }
            if earlier:
                pairs.append((i, earlier))
    return pairs


def _mentions(tokens):
    """Return (thing, first word, last word) for each bracket in ``Entity=``."""
    opened, found = defaultdict(list), []
    for i, token in enumerate(tokens):
        for bracket in re.findall(r"\([^()]*\)?|[^()]+\)", (token["misc"] or {}).get("Entity", "")):
            thing = bracket.strip("()").split("-")[0]
            if bracket.startswith("("):
                opened[thing].append(i)
            if bracket.endswith(")") and opened[thing]:
                found.append((thing, opened[thing].pop(), i))
    return found
