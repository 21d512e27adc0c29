"""Types that signatures name more than once; shapes stand in the docstrings."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]
BoolArray = NDArray[np.bool_]
Integer = SupportsIndex  # Python's integers and NumPy's
Shape = tuple[int, ...]


class Task(Protocol):
    """What `mha_lib.learning.fit` needs of a task."""

    # Quoted, since NumPy loads its random numbers only when they are named.
    def batch(self, rng: "np.random.Generator", n_sequences: int) -> Any: ...


class Trainable(Protocol):
    """What `mha_lib.learning.fit` needs of a model."""

    @property
    def parameters(self) -> Mapping[str, FloatArray]: ...
    @property
    def gradients(self) -> Mapping[str, FloatArray]: ...
    def forward(self, batch: Any) -> FloatArray: ...
    def loss(self, outputs: Any, batch: Any) -> tuple[float, FloatArray, FloatArray]: ...
    def backward(self, d_outputs: Any) -> None: ...


class Model(Trainable, Protocol):
    """What `mha_lib.learning.pruning` needs of a model: heads that gates can remove."""

    @property
    def layers(self) -> Sequence[Any]: ...
    def forward(self, batch: Any, gates: Any = None) -> FloatArray: ...
    def evaluate(self, batch: Any, gates: Any = None) -> tuple[float, FloatArray]: ...
