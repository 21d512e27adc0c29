"""Measure the heads of the trained encoder, and write what chapter 5 shows.

    python -m bench.heads                    # all but natural text, about ten minutes
    python -m bench.heads DEV TEST           # a treebank of yours, in CoNLL-U: prints a table
    python -m bench.heads DEV TEST --save "UD English-EWT 2.17"   # and keeps it for the book

Heads are chosen on DEV, and the figures are of TEST.  With one file, its sentences are divided into
two halves.  Of a treebank only figures are kept, never text.
"""

import argparse
import hashlib
import json
import platform
import re
import sys
import time
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np

from bench.heads import gallery, probes, removal
from bench.heads.relations import digits, head_index, hits, holds, row, share
from bench.heads.sentences import ANTECEDENT, LENGTHS, RELATIONS, read_sentences, sha256
from mha_lib.learning import weights
from mha_lib.learning.encoder import Encoder

DATA = Path(__file__).parents[2] / "chapters" / "data"
SENTENCES, TRIPLETS = DATA / "sentences.conllu", DATA / "triplets.tsv"
HEADS, GALLERY, FEATURE = (DATA / f"{name}.json" for name in ("heads", "gallery", "feature"))
FIRST_PAGE = [probes.FEATURE]  # what feature.json has of the gallery
SEEDS = range(5)  # of untrained encoders
N_ORDERS = 20  # random orders of removal
STEP = 6  # heads between the points of most curves
FEWEST = 30  # pairs for which a relation is reported of a treebank
ASKED = "2-4 2-9 1-3 3-1 3-4 3-9 3-12 4-2".split()  # of the book's sentence


def encoders():
    """Return the trained encoder and untrained ones; in float64 nothing hangs on rounding."""
    trained = Encoder.load(dtype=np.float64)
    others = [Encoder.untrained(trained.vocabulary, seed=seed, dtype=np.float64) for seed in SEEDS]
    return trained, others


def provenance():
    """Return where all figures come from."""
    packages = ("numpy", "safetensors", "tokenizers", "conllu")
    return {
        "program": "python -m bench.heads",
        "model": weights.MODEL,
        "package": weights.PACKAGE,
        "sha256": dict(weights.FILES),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
        "dtype": "float64",
        "seeds of untrained encoders": [*SEEDS],
        "sentences": {path.name: sha256(path) for path in (SENTENCES, TRIPLETS)},
        "heads": "layer-head, counted from 1; lists of 72 go through the heads of layer 1 first",
        "interval": "95 %: Wilson (1927) for shares of pairs; else bootstrap over sentences, "
        "name pairs or triplets",
    }


# Relations ----------------------------------------------------------------------------------------


def table(encoder, untrained, choosing, reporting):
    """Return the rows of relations, chosen on some sentences and reported on others."""
    pairs = [(hits(one, choosing), hits(one, reporting)) for one in (encoder, *untrained)]
    ours, theirs = pairs[0]
    return [
        row(name, ours[name], theirs[name],
            [(mine[name], others[name]) for mine, others in pairs[1:]])
        for name in (ANTECEDENT, *RELATIONS)
        if name in ours and name in theirs
    ]  # fmt: skip


def halves(sentences):
    """Return every other sentence, from the first and from the second on."""
    return sentences[0::2], sentences[1::2]


def by_pronoun(encoder, sentences, heads):
    """Return how often heads find the antecedent, for each kind of pronoun."""
    found = hits(encoder, sentences, (ANTECEDENT,)).get(ANTECEDENT)
    groups = {
        "he / she": "he she him her his hers himself herself",
        "it": "it its itself",
        "they": "they them their themselves",
    }
    rows = {}
    for name, words in groups.items():
        group = found.of(np.array([word in words.split() for word in found.query]))
        if len(group):
            rows[name] = {
                "n": len(group),
                "heads": {head: share(group.heads[:, head_index(head)]) for head in heads},
                "rule accuracy": digits(group.rule.mean()),
            }
    return rows


def made_up(encoder, untrained):
    """Return the table for our own sentences."""
    sentences = read_sentences(SENTENCES)
    found = hits(encoder, sentences)
    return {
        "n sentences": len(sentences),
        "chosen on": "every other sentence, from the first on",
        "reported on": "the others",
        "rows": table(encoder, untrained, *halves(sentences)),
        # Chosen and reported on all of them: what one would say who does not look again.
        "all": [row(name, of, of, []) for name, of in found.items()],
        "pronouns": by_pronoun(encoder, sentences, ("2-4", "4-2")),
    }


def natural(encoder, untrained, files):
    """Return the table for the sentences of a treebank in one file or two."""
    choosing, reporting = files if len(files) == 2 else halves(files[0])
    rows = table(encoder, untrained, choosing, reporting)
    rows = [one for one in rows if min(one["n"], one["n choosing"]) >= FEWEST]
    result = {
        "sentences of": f"{LENGTHS[0]} to {LENGTHS[-1]} words",
        "n sentences": [len(choosing), len(reporting)],
        "rows": rows,
        # What the heads that our own sentences chose do here.
        "heads of made-up text": carried_over(encoder, reporting, rows),
        "positions": probes.positions(encoder, reporting),
    }
    if any(one["relation"] == ANTECEDENT for one in rows):
        heads = ("2-4", "4-2")
        result["pronouns"] = {
            kind: by_pronoun(encoder, part, heads)
            for kind, part in (
                ("choosing", choosing),
                ("reporting", reporting),
                ("both", choosing + reporting),
            )
        }
    return result


def carried_over(encoder, sentences, rows):
    """Return what heads that were chosen on made-up sentences do on others."""
    chosen = {one["relation"]: one["head"] for one in read(HEADS)["relations"]["made up"]["rows"]}
    found = hits(encoder, sentences)
    result = {}
    for baseline in rows:
        name = baseline["relation"]
        head, of = head_index(chosen[name]), found[name]
        far = of.heads[of.far, head]
        line = {
            "head": chosen[name],
            "n": len(of),
            **share(of.heads[:, head]),
            "far": {"n": len(far), **share(far)} if len(far) else None,
        }
        result[name] = {**line, "holds": holds(line, baseline)}
    return result


# Removal ------------------------------------------------------------------------------------------


def parts_of_removal(encoder):
    """Return sentences to tune on and triplets to report on, ready for an encoder."""
    triplets = removal.read_triplets(TRIPLETS)
    n = removal.N_OVERTUNED
    texts = [" ".join(sentence.words) for sentence in read_sentences(SENTENCES)]
    return {
        "tuning": removal.Corpus(encoder, texts),
        "few": removal.Corpus(encoder, [*chain(*triplets[:n])]),
        "reporting": removal.Corpus(encoder, [*chain(*triplets[n:])]),
    }


def removed(encoder, log=print):
    """Return what is left of finding paraphrases along several orders of removal."""
    corpora = parts_of_removal(encoder)
    start = time.perf_counter()

    def say(step, best):
        log(f"  {step} of 72 heads, score {best[0]:.4f}, {time.perf_counter() - start:.0f} s")

    tuning, few = corpora["tuning"], corpora["few"]
    greedy = removal.greedy_order(tuning, removal.closeness(tuning), say)
    overtuned = removal.greedy_order(few, removal.quality(few), say)
    return along(encoder, corpora, greedy, overtuned)


def along(encoder, corpora, greedy, overtuned):
    """Return what is left along orders that were found before, and random ones."""
    shape = encoder.n_layers, encoder.n_heads
    reporting, tuning, few = (corpora[name] for name in ("reporting", "tuning", "few"))
    counts, some = [*range(73)], [*range(0, 73, STEP)]
    ranks = removal.ranks_along(reporting, greedy, counts)
    whole = ranks[0]
    losses = 1 - ranks.mean(axis=1) / whole.mean()
    return {
        "metric": "mean reciprocal rank of the paraphrase among all paraphrases and decoys, and of "
        "the sentence among all sentences and decoys",
        "n triplets": reporting.n // 3,
        "all heads": digits(whole.mean()),
        "no heads": digits(ranks[-1].mean()),
        "loss without any": {
            "loss": digits(losses[-1]),
            "interval": digits(removal.loss_interval(ranks[-1], whole)),
        },
        "found": {
            name: removal.what_is_found(reporting.embeddings(gates))
            for name, gates in (("all heads", np.ones(shape)), ("no heads", np.zeros(shape)))
        },
        "greedy": {
            "tuned on": "closeness of the embeddings of our own sentences, without labels",
            "order": removal.names(greedy),
            "curve": removal.curve(ranks),
            "intervals of the loss": {
                str(n): digits(removal.loss_interval(ranks[n], whole)) for n in some[1:]
            },
            "removed below a loss of": {
                f"{limit:.0%}": _below(losses, limit) for limit in (0.01, 0.03, 0.05)
            },
        },
        "overtuned": {
            "tuned on": f"the metric itself, on {removal.N_OVERTUNED} triplets",
            "order": removal.names(overtuned),
            "removed": some,
            "curve": removal.curve(removal.ranks_along(reporting, overtuned, some)),
            "curve on what it was tuned on": removal.curve(
                removal.ranks_along(few, overtuned, some)
            ),
        },
        "random": at_random(reporting, shape, some),
        "one head a layer": one_head_a_layer(
            reporting, tuning, one_a_layer(greedy, shape), shape, whole
        ),
        "single": single(reporting, tuning, shape, whole),
        "share of parameters": share_of_parameters(encoder),
    }


def at_random(reporting, shape, counts):
    """Return the curves of random orders."""
    curves = [
        removal.curve(removal.ranks_along(reporting, order, counts))
        for order in removal.random_orders(shape, N_ORDERS)
    ]
    return {
        "removed": counts,
        "mean": digits(np.mean(curves, axis=0)),
        "least": np.min(curves, axis=0).tolist(),
        "greatest": np.max(curves, axis=0).tolist(),
        "curves": curves,
    }


def single(reporting, tuning, shape, whole):
    """Return what is lost without each head alone, and how near the embeddings stay."""
    near = removal.closeness(tuning)
    losses, cosines = [], []
    for head in np.ndindex(*shape):
        gates = _gates([head], shape)
        left = removal.reciprocal_ranks(reporting.embeddings(gates))
        losses.append(1 - left.mean() / whole.mean())
        cosines.append(near(tuning.embeddings(gates)))
    return {"loss": digits(losses), "cosine": digits(cosines, 4)}


def _below(losses, limit):
    """Return how many heads go before the loss first reaches the limit."""
    return int(np.argmax(losses >= limit)) - 1


def _gates(heads, shape):
    """Return gates without these heads."""
    gates = np.ones(shape)
    for head in heads:
        gates[head] = 0
    return gates


def one_a_layer(order, shape):
    """Return of each layer the head that an order removes last."""
    return [[head for head in order if head[0] == layer][-1] for layer in range(shape[0])]


def one_head_a_layer(reporting, tuning, kept, shape, whole):
    """Return what is left with one head in each layer, and in one layer alone."""
    everywhere = 1 - _gates(kept, shape)
    ranks = removal.reciprocal_ranks(reporting.embeddings(everywhere))
    near = removal.closeness(tuning)
    alone = []
    for layer in range(shape[0]):
        scores = []
        for head in range(shape[1]):
            gates = np.ones(shape)
            gates[layer] = np.arange(shape[1]) == head
            scores.append((near(tuning.embeddings(gates)), head, gates))
        _, head, gates = max(scores, key=lambda triple: triple[0])
        left = removal.reciprocal_ranks(reporting.embeddings(gates))
        alone.append(
            {
                "head": f"{layer + 1}-{head + 1}",
                "loss": digits(1 - left.mean() / whole.mean()),
                "interval": digits(removal.loss_interval(left, whole)),
            }
        )
    return {
        "kept": removal.names(kept),
        "loss": digits(1 - ranks.mean() / whole.mean()),
        "interval": digits(removal.loss_interval(ranks, whole)),
        "in one layer alone": alone,
    }


def share_of_parameters(encoder):
    """Return which share of all parameters the heads hold, with what mixes them."""
    attention = sum(
        w.size + b.size for layer in encoder._layers for w, b in (layer[name] for name in "qkvo")
    )
    rest = sum(array.size for array in encoder._embeddings.values())
    rest += sum(array.size for array in encoder._first_norm)
    rest += sum(
        array.size
        for layer in encoder._layers
        for name, pair in layer.items()
        if name not in "qkvo"
        for array in pair
    )
    return digits(attention / (attention + rest))


# All together -------------------------------------------------------------------------------------


def measured(encoder, untrained):
    """Return all but natural text and removal: it takes less than a minute."""
    sentences = read_sentences(SENTENCES)
    own = made_up(encoder, untrained)
    head = own["rows"][0]["head"]  # from pronouns to what they stand for
    return {
        "relations": {"made up": own},
        "positions": {"made up": probes.positions(encoder, sentences)},
        "pronoun swap": {
            name: probes.swap(encoder, *swap, head_index(head), untrained)
            for name, swap in probes.SWAPS.items()
        },
        "feature": probes.feature(encoder, ASKED),
        "failures": {
            "winograd": probes.winograd(encoder, (head, "4-2")),
            "stereotype": probes.stereotype(encoder, head_index(head)),
        },
    }


def read(path):
    """Return what a file of ours holds, or nothing yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path, content):
    """Write a file that changes only in the lines whose numbers change, with its digest."""
    content = {name: part for name, part in content.items() if name != "digest"}
    content["digest"] = digest(content)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    # A list of numbers or words takes one line.
    text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found.group().split()), text)
    path.write_text(text + "\n", encoding="utf-8")


def digest(content):
    """Return what changes when any number does: nobody mends a figure by hand unnoticed."""
    parts = {name: part for name, part in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()


def show(rows):
    """Print rows of relations as a table."""
    print(f"{'relation':24}{'head':>6}{'n':>6}  accuracy [95 %]     offset      rule  untrained")
    for one in rows:
        low, high = one["interval"]
        print(
            f"{one['relation']:24}{one['head']:>6}{one['n']:6}  {one['accuracy']:.2f} [{low:.2f}, "
            f"{high:.2f}]  {one['offset']:+3d} {one['offset accuracy']:.2f}    "
            f"{one['rule accuracy']:.2f}  {np.mean(one['untrained'] or [np.nan]):.2f}"
        )


def main(arguments=None):
    """Do as told on the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebank", nargs="*", type=Path, help="a file in CoNLL-U, or two")
    parser.add_argument("--save", metavar="NAME", help="keep the figures of the treebank so named")
    parser.add_argument("--quick", action="store_true", help="leave out the removal of heads")
    options = parser.parse_args(arguments)
    if len(options.treebank) > 2:
        parser.error("name one file, or one to choose heads on and one to report on")
    try:
        encoder, untrained = encoders()
        files = [read_sentences(path) for path in options.treebank]
    except (weights.WeightsError, ModuleNotFoundError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.treebank:
        result = natural(encoder, untrained, files)
        show(result["rows"])
        print(f"Relations with fewer than {FEWEST} pairs are left out.")
        if not options.save:
            return 0
        content = read(HEADS)
        others = content["relations"].get("natural", [])
        result = {
            "name": options.save,
            "sha256": {path.name: sha256(path) for path in options.treebank},
            **result,
        }
        content["relations"]["natural"] = [
            one for one in others if one["name"] != options.save
        ] + [result]  # fmt: skip
    else:
        new = measured(encoder, untrained)
        left = None if options.quick else removed(encoder)
        content = read(HEADS)
        new["relations"]["natural"] = content.get("relations", {}).get("natural", [])
        new["removal"] = left or content.get("removal")
        content = {"provenance": provenance(), **new}
        show(content["relations"]["made up"]["rows"])
    write(HEADS, content)
    write(GALLERY, gallery.gallery(encoder, content))
    write(FEATURE, gallery.gallery(encoder, content, FIRST_PAGE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
