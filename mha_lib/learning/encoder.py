"""A trained encoder, of the kind of BERT, on the library's own attention.

Devlin et al. (2019): embeddings, then layers of multi-head attention and a small network for each
token, each with what came before added and the sum normalised.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mha_lib import _check
from mha_lib._types import FloatArray, IntArray, Integer
from mha_lib.attention import _attend
from mha_lib.learning.layer import _times
from mha_lib.multihead import _merge, _split

EPSILON = 1e-12  # added to variances
SPECIAL = -1  # the "word" of [CLS] and [SEP]
UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
SAFETENSORS, VOCABULARY, CONFIG = "model.safetensors", "vocab.txt", "config.json"
# What config.json must say, since nothing else is computed here.
COMPUTED = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "layer_norm_eps": EPSILON,
    "position_embedding_type": "absolute",
}
EMBEDDINGS = "embeddings."
LAYER = "encoder.layer.{}."
# Names in the file and here, shapes by the letters of the layer; the file's matrices have one row
# for each output.
PARTS = {
    "attention.self.query": ("q", "d", "d"),
    "attention.self.key": ("k", "d", "d"),
    "attention.self.value": ("v", "d", "d"),
    "attention.output.dense": ("o", "d", "d"),
    "attention.output.LayerNorm": ("attention norm", "d"),
    "intermediate.dense": ("up", "d_hidden", "d"),
    "output.dense": ("down", "d", "d_hidden"),
    "output.LayerNorm": ("norm", "d"),
}


@dataclass(frozen=True)
class Pieces:
    """A sentence as an encoder reads it: words, cut into pieces of its vocabulary.

    Attributes
    ----------
    words : list of str
        The words of the sentence; punctuation is a word of its own.
    pieces : list of str
        [CLS], the pieces of all words, [SEP].  One that goes on with a word starts with ``##``.
    ids : int array, (n,)
        The pieces as numbers.
    word_of : int array, (n,)
        Which word each piece is of; -1 for [CLS] and [SEP].

    Examples
    --------
    >>> encoder = Encoder.load()  # doctest: +SKIP
    >>> encoder.tokens("a slow waltz").pieces  # doctest: +SKIP
    ['[CLS]', 'a', 'slow', 'waltz', '[SEP]']
    """

    words: list[str]
    pieces: list[str]
    ids: IntArray
    word_of: IntArray


class Encoder:
    """An encoder of the kind of BERT: words in, one vector for each piece out.

    Parameters
    ----------
    tensors : dict of str to array
        Weights under the names that published models of this kind use, such as
        ``encoder.layer.0.attention.self.query.weight``.
    vocabulary : list of str
        The pieces that words are cut into, by their number.
    n_heads : int
        Number of heads h in each layer; it must divide the width d.
    dtype : {"float32", "float64"}, default "float32"
        In which numbers are computed.  The published weights are float32, which is quicker; with
        float64, rounding is too small to turn a comparison of two heads round.

    Attributes
    ----------
    n_layers, n_heads, d, n_max : int
        Layers L, heads h in a layer, width d, and the most pieces a sentence may have.
    vocabulary : list of str
        As given.

    Raises
    ------
    ValueError
        A tensor is missing, has another shape, or holds inf or NaN.

    See Also
    --------
    mha_lib.learning.weights.fetch_weights : gets the weights that `load` reads.

    Notes
    -----
    With the same weights, hidden states agree with PyTorch's up to 1e-5.

    References
    ----------
    Devlin et al. (2019), arXiv:1810.04805.
    Wang et al. (2020), arXiv:2002.10957 (MiniLM).
    Reimers and Gurevych (2019), arXiv:1908.10084 (embeddings of sentences).

    Examples
    --------
    >>> words = "[UNK] [CLS] [SEP] the cat sat".split()
    >>> encoder = Encoder.untrained(words, n_layers=3, n_heads=2, d=8, d_hidden=11, n_max=7)
    >>> hidden, weights = encoder.forward([1, 3, 4, 5, 2])
    >>> hidden.shape, weights.shape
    ((5, 8), (3, 2, 5, 5))
    """

    def __init__(
        self,
        tensors: Mapping[str, ArrayLike],
        vocabulary: Sequence[str],
        n_heads: Integer,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.vocabulary = _check.words("vocabulary", vocabulary)
        self.n_heads = _check.integer("n_heads", n_heads, minimum=1)
        self._dtype = np.dtype(dtype)
        if self._dtype not in _check.FLOATS:
            raise ValueError(f"dtype={self._dtype} is not known: use 'float32' or 'float64'")
        layers = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
        self.n_layers = max(len(layers), 1)
        for kind in (UNKNOWN, FIRST, LAST):
            if kind not in self.vocabulary:
                raise ValueError(f"vocabulary has no {kind}: add it, with an embedding of its own")
        sizes = {"n_words": len(self.vocabulary)}
        self._embeddings = {
            name: self._tensor(tensors, f"{EMBEDDINGS}{name}.weight", axes, sizes)
            for name, axes in (
                ("word_embeddings", ("n_words", "d")),
                ("position_embeddings", ("n_max", "d")),
                ("token_type_embeddings", ("n_types", "d")),
            )
        }
        self.d, self.n_max = sizes["d"], sizes["n_max"]
        _check.divides("n_heads", self.n_heads, "d", self.d)
        self._first_norm = self._pair(tensors, EMBEDDINGS + "LayerNorm", ("d",), sizes)
        self._layers = [
            {
                ours: self._pair(tensors, LAYER.format(i) + theirs, axes, sizes)
                for theirs, (ours, *axes) in PARTS.items()
            }
            for i in range(self.n_layers)
        ]
        self._tokenizer: Any = None

    @classmethod
    def load(cls, folder: str | Path | None = None, dtype: DTypeLike = np.float32) -> "Encoder":
        """Return the encoder whose weights are in a folder.

        Parameters
        ----------
        folder : str or pathlib.Path, optional
            It has ``model.safetensors``, ``vocab.txt`` and ``config.json``.  None = the book's
            own, all-MiniLM-L6-v2, which `mha_lib.learning.weights.fetch_weights` fetches; the
            files are compared with their SHA-256.
        dtype : {"float32", "float64"}, default "float32"
            In which numbers are computed.

        Returns
        -------
        encoder : Encoder

        Raises
        ------
        WeightsError
            A file is missing, damaged, or does not have what this class computes with.
        ModuleNotFoundError
            The packages of ``mha_lib[model]`` are not installed.
        """
        with _check.needing("Encoder.load", "model"):
            import safetensors.numpy  # not for those who only read the book
            import tokenizers  # noqa: F401 - lest it is missed only by the first sentence
        # Not above: `python -m mha_lib.learning.weights` must be the first to import it.
        from mha_lib.learning.weights import WeightsError, _verified_folder

        chosen = _verified_folder() if folder is None else Path(folder)
        paths = {name: chosen / name for name in (CONFIG, VOCABULARY, SAFETENSORS)}
        contents: dict[str, Any] = {}
        for name, read in (
            (CONFIG, lambda path: json.loads(path.read_text(encoding="utf-8"))),
            # Some words are line ends of Unicode: only "\n" divides the file.
            (VOCABULARY, lambda path: path.read_bytes().decode("utf-8").rstrip("\n").split("\n")),
            (SAFETENSORS, safetensors.numpy.load_file),
        ):
            try:
                contents[name] = read(paths[name])
            except FileNotFoundError:
                raise WeightsError(
                    f"{paths[name]} is missing: name a folder that has {', '.join(paths)}, or "
                    f"none, for the book's own weights"
                ) from None
            except (OSError, ValueError, safetensors.SafetensorError) as error:
                raise WeightsError(
                    f"{paths[name]} cannot be read, and may be cut short or of another kind "
                    f"({error}): fetch it again"
                ) from None
        config = contents[CONFIG]
        if not isinstance(config, dict):
            raise WeightsError(f"{paths[CONFIG]} holds no settings: it must start with {{")
        for key, value in COMPUTED.items():
            # Older files leave out where positions come from.
            if config.get(key, value if key == "position_embedding_type" else None) != value:
                raise WeightsError(
                    f"{paths[CONFIG]} has {key}={config.get(key)!r}, but this class computes "
                    f"{value!r}: use the weights of another model"
                )
        try:
            n_heads = config["num_attention_heads"]
            encoder = cls(contents[SAFETENSORS], contents[VOCABULARY], n_heads, dtype)
        except KeyError as error:
            raise WeightsError(f"{paths[CONFIG]} does not say {error}: fetch it again") from None
        except ValueError as error:
            raise WeightsError(f"{paths[SAFETENSORS]} does not fit: {error}") from None
        if encoder.n_layers != config.get("num_hidden_layers"):
            raise WeightsError(
                f"{paths[SAFETENSORS]} has {encoder.n_layers} layers, but {paths[CONFIG]} says "
                f"num_hidden_layers={config.get('num_hidden_layers')}: use two files of one model"
            )
        return encoder

    @classmethod
    def untrained(
        cls,
        vocabulary: Sequence[str],
        *,
        seed: Integer = 0,
        n_layers: Integer = 6,
        n_heads: Integer = 12,
        d: Integer = 384,
        d_hidden: Integer = 1536,
        n_max: Integer = 512,
        dtype: DTypeLike = np.float32,
    ) -> "Encoder":
        """Return an encoder as it is before training: what its heads do by chance.

        Parameters
        ----------
        vocabulary : list of str
            As for the class.
        seed : int, default 0
            Draws the weights as BERT's were: normal with standard deviation 0.02, all offsets 0.
        n_layers, n_heads, d, d_hidden, n_max : int
            Layers, heads in a layer, width, width of the network for each token, and most pieces
            of a sentence.  By default those of all-MiniLM-L6-v2.
        dtype : {"float32", "float64"}, default "float32"
            In which numbers are computed.

        Returns
        -------
        encoder : Encoder
        """
        vocabulary = _check.words("vocabulary", vocabulary)
        rng = np.random.default_rng(_check.integer("seed", seed, minimum=0))
        sizes = {
            name: _check.integer(name, value, minimum=1)
            for name, value in (("d", d), ("d_hidden", d_hidden), ("n_max", n_max))
        }
        n_layers = _check.integer("n_layers", n_layers, minimum=1)
        sizes |= {"n_words": len(vocabulary), "n_types": 2}
        shapes: dict[str, Sequence[str]] = {
            f"{EMBEDDINGS}{name}_embeddings": axes
            for name, axes in (
                ("word", ("n_words", "d")), ("position", ("n_max", "d")),
                ("token_type", ("n_types", "d")),
            )
        }  # fmt: skip
        shapes[EMBEDDINGS + "LayerNorm"] = ("d",)
        for i in range(n_layers):
            shapes |= {LAYER.format(i) + name: axes for name, (_, *axes) in PARTS.items()}
        tensors = {}
        for name, axes in shapes.items():
            shape = tuple(sizes[axis] for axis in axes)
            normed = name.endswith("LayerNorm")
            tensors[name + ".weight"] = np.ones(shape) if normed else rng.normal(0, 0.02, shape)
            tensors[name + ".bias"] = np.zeros(shape[0])
        return cls(tensors, vocabulary, n_heads, dtype)

    def tokens(self, sentence: str | Sequence[str]) -> Pieces:
        """Return a sentence as the pieces that the encoder knows.

        Parameters
        ----------
        sentence : str or list of str
            A text, which is cut at spaces and punctuation, or its words.

        Returns
        -------
        pieces : Pieces

        Raises
        ------
        ValueError
            There is no word, or there are more pieces than the encoder has positions.
        """
        tokenizer = self._words_to_pieces()
        if isinstance(sentence, str):
            encoded = tokenizer.encode(sentence)
            word_of = np.array(encoded.word_ids, int)
            ids = encoded.ids
            # A word is what its pieces cover, with its own capitals and accents.
            spans: dict[int, tuple[int, int]] = {}
            for word, (start, end) in zip(word_of.tolist(), encoded.offsets, strict=True):
                spans[word] = spans.get(word, (start, end))[0], end
            words = [sentence[start:end] for start, end in spans.values()]
        else:
            words = _check.words("sentence", sentence)
            # Of a word that is nothing but control characters no piece is left.
            found = [tokenizer.encode(word).ids or [self._number[UNKNOWN]] for word in words]
            ids = [i for one in found for i in one]
            word_of = np.repeat(np.arange(len(found)), [len(one) for one in found])
        if not ids:
            raise ValueError(f"sentence={sentence!r} has no word: write at least one")
        ids = np.array([self._number[FIRST], *ids, self._number[LAST]])
        self._check_length("sentence", len(ids))
        return Pieces(
            words,
            [self.vocabulary[i] for i in ids],
            ids,
            np.concatenate([[SPECIAL], word_of, [SPECIAL]]),
        )

    def forward(
        self, ids: ArrayLike, gates: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the hidden states after the last layer, and the attention weights of all heads.

        Parameters
        ----------
        ids : int array, (..., n)
            Sentences of one length, as `tokens` numbers their pieces.
        gates : float array broadcastable to (L, h), optional
            A factor for each head's output: 1 leaves it, 0 removes it.  None = all 1.

        Returns
        -------
        hidden : float array, (..., n, d)
        weights : float array, (..., L, h, n, n)
            Rows sum to 1.

        Raises
        ------
        ValueError
            There are too many pieces, or numbers that no piece has.
        """
        x = self._embedded(ids)  # (..., n, d)
        all_weights = []
        for layer, factors in zip(self._layers, self._gates(gates), strict=True):
            x, weights = self._through(layer, x, factors)
            all_weights.append(weights)  # (..., h, n, n)
        return x, np.stack(all_weights, axis=-4)

    def embed(self, sentences: str | Sequence[str], gates: ArrayLike | None = None) -> FloatArray:
        """Return one vector of length 1 for each sentence: the mean of its hidden states.

        Parameters
        ----------
        sentences : str or list of str
            One text or several.
        gates : float array broadcastable to (L, h), optional
            See `forward`.

        Returns
        -------
        embeddings : float array, (..., d)
            The scalar product of two is their cosine: near 1 where sentences mean much the same.
        """
        if isinstance(sentences, str):
            return self.embed([sentences], gates)[0]
        ids = [self.tokens(sentence).ids for sentence in sentences]
        embeddings = np.empty((len(ids), self.d), self._dtype)
        # Sentences of one length go together, so that no padding is needed.
        for n in {len(one) for one in ids}:
            same = [i for i, one in enumerate(ids) if len(one) == n]
            hidden = self._hidden(np.stack([ids[i] for i in same]), gates)
            embeddings[same] = _pooled(hidden)
        return embeddings

    def _hidden(self, ids, gates):
        x = self._embedded(ids)
        for layer, factors in zip(self._layers, self._gates(gates), strict=True):
            x, _ = self._through(layer, x, factors)
        return x

    def _embedded(self, ids):
        """Return what the first layer gets: word, position and kind of sentence, normalised."""
        ids = _check.integer_array("ids", ids)
        if ids.ndim == 0 or ids.shape[-1] == 0:
            raise ValueError(
                f"ids has shape {ids.shape}, so there is no piece: pass encoder.tokens(text).ids"
            )
        self._check_length("ids", ids.shape[-1])
        _check.within("ids", ids, len(self.vocabulary), "words")
        words, positions, kinds = self._embeddings.values()
        x = words[ids] + positions[: ids.shape[-1]] + kinds[0]  # (..., n, d)
        return layer_norm(x, *self._first_norm)

    def _through(self, layer, x, gates):
        """Return the output of one layer and its attention weights."""
        q, k, v = (_split(_affine(x, *layer[name]), self.n_heads) for name in "qkv")
        heads, weights = _attend(q, k, v)  # (..., h, n, d_k), (..., h, n, n)
        heads *= gates[:, None, None]
        x = layer_norm(x + _affine(_merge(heads), *layer["o"]), *layer["attention norm"])
        inner = gelu(_affine(x, *layer["up"]))  # (..., n, d_hidden)
        return layer_norm(x + _affine(inner, *layer["down"]), *layer["norm"]), weights

    def _gates(self, gates):
        shape = self.n_layers, self.n_heads
        if gates is None:
            return np.ones(shape, self._dtype)
        gates = _check.real_array("gates", gates)
        _check.finite("gates", gates)
        _check.broadcasts("gates", gates, shape, "one gate per head, (L, h)")
        return np.broadcast_to(gates, shape).astype(self._dtype)

    def _check_length(self, name, n):
        if n > self.n_max:
            raise ValueError(
                f"{name} has {n} pieces with {FIRST} and {LAST}, but the encoder has positions for "
                f"n_max={self.n_max}: cut the text into parts of at most {self.n_max - 2} pieces"
            )

    def _words_to_pieces(self):
        """Return what cuts words into pieces; it neither cuts a text short nor pads it."""
        if self._tokenizer is None:
            with _check.needing("Encoder.tokens", "model"):
                from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
            self._number = {piece: i for i, piece in enumerate(self.vocabulary)}
            tokenizer = Tokenizer(models.WordPiece(self._number, unk_token=UNKNOWN))
            tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
            tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            # "[SEP]" in a text is three words: no special token is known here.
            self._tokenizer = tokenizer
        return self._tokenizer

    def _tensor(self, tensors, name, axes, sizes):
        """Return a tensor as an array of the right shape; sizes met for the first time are kept."""
        if name not in tensors:
            raise ValueError(
                f"there is no tensor {name!r} among {len(tensors)}: use the weights of an encoder "
                f"like BERT"
            )
        array = _check.real_array(name, tensors[name]).astype(self._dtype, copy=False)
        expected = tuple(sizes.get(axis, "any") for axis in axes)
        if array.ndim != len(axes) or any(
            size != sizes.setdefault(axis, size)
            for axis, size in zip(axes, array.shape, strict=True)
        ):
            letters = ", ".join(axes)
            raise ValueError(
                f"{name} has shape {array.shape}, expected ({letters}) = {expected}: use weights, "
                f"vocabulary and settings of one model"
            )
        _check.finite(name, array)
        return array

    def _pair(self, tensors, name, axes, sizes):
        """Return the two tensors of a layer: a matrix that tokens are multiplied with, or a scale;
        and what is added."""
        weight = self._tensor(tensors, name + ".weight", axes, sizes)
        return weight.T, self._tensor(tensors, name + ".bias", axes[:1], sizes)


def gelu(x: ArrayLike) -> FloatArray:
    r"""Return what a layer's network does to each number: small and negative ones nearly vanish.

    .. math:: \operatorname{gelu}(x)
              = \tfrac x2 \left(1 + \operatorname{erf} \tfrac x{\sqrt 2}\right)

    Parameters
    ----------
    x : float array, (...)
        Any numbers.

    Returns
    -------
    y : float array, (...)
        In the dtype of ``x``.

    Notes
    -----
    NumPy has no erf.  The one used here, of Abramowitz and Stegun, is wrong by at most 1.5e-7, so
    ``y`` is wrong by at most 1e-7 times the size of ``x``.  The formula with tanh that many models
    use is another function, up to 5e-4 away.

    References
    ----------
    Hendrycks and Gimpel (2016), arXiv:1606.08415.
    Abramowitz and Stegun (1964), *Handbook of Mathematical Functions*, 7.1.26.

    Examples
    --------
    >>> gelu([-3.0, 0.0, 3.0]).round(3)
    array([-0.004,  0.   ,  2.996])
    """
    x = _check.real_array("x", x)
    return 0.5 * x * (1 + _erf(x * math.sqrt(0.5)))


def _erf(x):
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = 1.061405429
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + coefficient
    return np.copysign(1 - series * t * np.exp(-x * x), x)


def layer_norm(x: ArrayLike, scale: ArrayLike, shift: ArrayLike) -> FloatArray:
    """Give every token mean 0 and variance 1, then a scale and a shift for each column.

    Parameters
    ----------
    x : float array, (..., d)
        One token per row.
    scale : float array, (d,)
        What each column is multiplied with.
    shift : float array, (d,)
        What is added to it.

    Returns
    -------
    y : float array, (..., d)
        1e-12 is added to the variance, so a row of equal numbers becomes ``shift``.

    References
    ----------
    Ba et al. (2016), arXiv:1607.06450.

    Examples
    --------
    >>> layer_norm([1.0, 2.0, 3.0], np.ones(3), np.zeros(3)).round(3)
    array([-1.225,  0.   ,  1.225])
    """
    x = _check.real_array("x", x, axes=("d",))
    for name, array in (("scale", scale), ("shift", shift)):
        _check.same_size(
            f"{name}", np.shape(array), "x (its last axis)", x.shape[-1:],
            "give one number for each column of x",
        )  # fmt: skip
    y = x - x.mean(axis=-1, keepdims=True)
    y /= np.sqrt(np.square(y).mean(axis=-1, keepdims=True) + EPSILON)
    return y * scale + shift


def _affine(x, w, b):
    return _times(x, w) + b


def _pooled(hidden):
    """Return the mean over the pieces, (..., n, d) to (..., d), with length 1."""
    mean = hidden.mean(axis=-2)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)
