"""Show where the heads of a trained encoder look, one sentence and one head at a time."""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from mha_lib import _check
from mha_lib._types import FloatArray, Integer
from mha_lib.figures.palette import HEAD_COLOURS
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, style

MARKS = ("[CLS]", "[SEP]")  # what stands before and after the words of a sentence
FAINTEST = 0.02  # a line for less would only blur the others


class HeadGallery(FrameWidget):
    """Choose a sentence, a head and a word, and see where the head looks from there.

    Parameters
    ----------
    measured : dict or path
        What ``make measure-heads`` wrote: a file such as ``data/gallery.json``, or its content.
    sentences : list of str, optional
        Sentences of your own, whose attention ``encoder`` computes.  None = those of ``measured``.
    encoder : mha_lib.learning.Encoder, optional
        Needed for sentences of your own.
    sentence : int, default 0
        Number of the sentence to begin with.
    head : str, default "2-4"
        Layer and head, counted from 1.
    other : str, optional
        A second head to compare with.
    word : str or int, optional
        The word that asks: its first occurrence, or its place.  None = no word, all lines alike.

    Notes
    -----
    The traits ``sentence``, ``head``, ``other`` and ``word`` can be read, set, observed and linked;
    here heads and words are numbers from 0, and -1 means none.
    """

    _esm = front_end("head_gallery")
    _css = style("head_gallery")

    settings = frame_settings = ("sentence",)
    sentence = Whole(0, minimum=0)
    head = Whole(0, minimum=0)
    other = Whole(-1, minimum=-1)
    word = Whole(-1, minimum=-1)
    _words: Any = traitlets.List().tag(sync=True)  # of each sentence
    _heads: Any = traitlets.List().tag(sync=True)  # name and measures of each head
    _full: Any = traitlets.Int(255).tag(sync=True)  # the number that means a weight of 1

    def __init__(
        self,
        measured: Mapping[str, Any] | str | Path,
        sentences: Sequence[str] | None = None,
        encoder: Any = None,
        *,
        sentence: Integer = 0,
        head: str = "2-4",
        other: str | None = None,
        word: str | Integer | None = None,
    ) -> None:
        stored = _read(measured)
        names = [one["head"] for one in stored["heads"]]
        if sentences is None:
            self._maps = [_decoded(one, len(names)) for one in stored["sentences"]]
            words = [one["words"] for one in stored["sentences"]]
        else:
            if isinstance(sentences, str):
                raise TypeError(
                    f"sentences must be a list of texts, not one: use sentences=[{sentences!r}]"
                )
            if encoder is None:
                raise ValueError("sentences of your own need encoder: pass Encoder.load()")
            if (n_heads := encoder.n_layers * encoder.n_heads) != len(names):
                raise ValueError(
                    f"encoder has {n_heads} heads, but measured names {len(names)}: pass the "
                    "encoder that was measured"
                )
            words = [_check.words(f"sentences[{i}]", one) for i, one in enumerate(sentences)]
            self._maps = [_computed(encoder, one, stored["full"]) for one in words]
        super().__init__(sentence=sentence)
        self._words, self._heads, self._full = words, stored["heads"], stored["full"]
        self.head = _place(names, "head", head)
        self.other = -1 if other is None else _place(names, "other", other)
        if word is not None:
            here = words[self.sentence]
            self.word = _place(here, "word", word) if isinstance(word, str) else word
        self.recompute()
        self.follow_settings()

    @traitlets.validate("sentence")
    def _check_sentence(self, proposal):
        return _below("sentence", proposal["value"], len(self._maps), "sentences")

    @traitlets.validate("head", "other")
    def _check_head(self, proposal):
        return _below(proposal["trait"].name, proposal["value"], len(self._heads), "heads")

    @traitlets.validate("word")
    def _check_word(self, proposal):
        return _below("word", proposal["value"], len(self._words[self.sentence]), "words")

    def weights(self) -> FloatArray:
        """Return the attention of the present head, (W + 2, W + 2), between [CLS], words, [SEP]."""
        return self._maps[self.sentence][self.head] / self._full

    def choices(self):
        return {"sentence": list(range(len(self._maps)))}

    def frame(self, sentence):
        return {"attention": self._maps[sentence]}

    def problem(self):
        return ""

    def picture(self):
        words, weights = self._words[self.sentence], self.weights()
        asks = self.word if self.word >= 0 else int(weights[1:-1, 1:-1].max(axis=1).argmax())
        row = weights[asks + 1]
        most = np.argsort(row[1:-1])[::-1][:2]
        name = self._heads[self.head]["head"]
        text = (
            f"Head {name}: “{words[asks]}” takes "
            + ", ".join(f"{row[i + 1]:.2f} from “{words[i]}”" for i in most)
            + f"; {row[0] + row[-1]:.2f} rests on the marks before and after the sentence."
        )
        return _picture.figure(_arcs(words, weights, asks, f"Head {name}", text), text)


def _read(measured):
    """Return what was measured, from a file if need be."""
    if isinstance(measured, str | Path):
        measured = json.loads(Path(measured).read_text(encoding="utf-8"))
    if not isinstance(measured, Mapping) or not {"heads", "sentences", "full"} <= set(measured):
        raise ValueError(
            "measured lacks 'heads', 'sentences' or 'full': pass a file that `make measure-heads` "
            "wrote, such as data/gallery.json"
        )
    return measured


def _decoded(sentence, n_heads):
    """Return the maps of a sentence as it is stored, (L h, W + 2, W + 2)."""
    n = len(sentence["words"]) + len(MARKS)
    data = np.frombuffer(base64.b64decode(sentence["attention"]), np.uint8)
    if data.size != n_heads * n * n:
        raise ValueError(
            f"the sentence {' '.join(sentence['words'])!r} has {data.size} weights, but {n_heads} "
            f"heads and {n} places need {n_heads * n * n}: run `make measure-heads` again"
        )
    return data.reshape(n_heads, n, n)


def _computed(encoder, words, full):
    """Return the maps of a sentence of the reader's own, (L h, W + 2, W + 2)."""
    from mha_lib.learning import word_attention

    pieces = encoder.tokens(words)
    _, weights = encoder.forward(pieces.ids)  # (L, h, n, n)
    maps = word_attention(weights, pieces.word_of)
    return np.rint(full * maps).astype(np.uint8).reshape(-1, *maps.shape[-2:])


def _place(names, argument, name):
    """Return which of the names this is."""
    if name not in names:
        shown = ", ".join(map(repr, names[:3]))
        raise ValueError(f"{argument}={name!r} is not there: use one of {shown}, ...")
    return names.index(name)


def _below(name, value, size, what):
    if value >= size:
        raise ValueError(f"{name}={value}, but there are {size} {what}: use {name} <= {size - 1}")
    return value


def _arcs(words, weights, asks, title, text):
    """Return an SVG of the words on a line, and lines as thick as their attention."""
    widths = [9.0 * len(word) + 14 for word in words]
    ends = np.cumsum(widths)
    centres = ends - np.array(widths) / 2
    parts = []
    for query, key in np.ndindex(len(words), len(words)):
        weight = weights[query + 1, key + 1]
        if query == key or weight < FAINTEST:
            continue
        a, b = centres[query], centres[key]
        height = min(130, 24 + 0.3 * abs(b - a))
        opacity = 1 if query == asks else 0.15
        parts.append(
            f'<path d="M{a:.0f} 150C{a:.0f} {150 - height:.0f} {b:.0f} {150 - height:.0f} '
            f'{b:.0f} 150" fill="none" stroke="{HEAD_COLOURS[0]}" '
            f'stroke-width="{12 * weight:.1f}" opacity="{opacity}"/>'
        )
    for word, x, place in zip(words, centres, range(len(words)), strict=True):
        bold = ' font-weight="bold"' if place == asks else ""
        parts.append(f'<text x="{x:.0f}" y="172" text-anchor="middle"{bold}>{escape(word)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {ends[-1]:.0f} 185" role="img" '
        f'style="width: 100%; height: auto"><title>{escape(title)}</title>'
        f'<desc>{escape(text)}</desc><g font-size="15" fill="currentColor">'
        f"{''.join(parts)}</g></svg>"
    )
