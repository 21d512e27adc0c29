"""What the widgets share: checked settings, precomputed frames, assembly of the front-end."""

import itertools
import json
import math
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from mha_lib import _check
from mha_lib.figures.palette import HEAD_COLOURS, WEIGHT_COLOURS, ink

FOLDER = Path(__file__).parent


def front_end(name):
    """Return the ES module of a widget: colours, the common part and its own part, in this order.

    An anywidget module cannot import its neighbours on a page that is opened as a file, so
    the parts are joined here.
    """
    colours = {
        "HEAD_COLOURS": HEAD_COLOURS,
        "HEAD_INKS": [ink(colour) for colour in HEAD_COLOURS],
        "WEIGHT_COLOURS": WEIGHT_COLOURS,
    }
    constants = "".join(f"const {key} = {json.dumps(value)};\n" for key, value in colours.items())
    return constants + "\n".join(
        (FOLDER / f"{part}.js").read_text(encoding="utf-8") for part in ("common", name)
    )


def style(name):
    """Return the style sheet of a widget: the common part and its own part, in this order."""
    return "\n".join(
        (FOLDER / f"{part}.css").read_text(encoding="utf-8") for part in ("common", name)
    )


class Whole(traitlets.TraitType):
    """A whole number of at least ``minimum``, of any integer type; None only if allowed."""

    def __init__(self, default_value, minimum=1, allow_none=False):
        super().__init__(default_value, allow_none=allow_none)
        self.minimum = minimum
        self.tag(sync=True)

    def validate(self, obj, value):
        return _check.integer(self.name, value, self.minimum)


class Words(traitlets.List):
    """A list of words; a text is split at spaces."""

    def __init__(self):
        super().__init__(traitlets.Unicode())
        self.tag(sync=True)

    def set(self, obj, value):  # traitlets itself would make one word of a text
        super().set(obj, _check.words(self.name, value))


class Number(traitlets.TraitType):
    """A finite real number."""

    def __init__(self, default_value):
        super().__init__(default_value)
        self.tag(sync=True)

    def validate(self, obj, value):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise TypeError(
                f"{self.name} must be a number, not {type(value).__name__} {value!r}: "
                f"pass {self.name} as a float"
            )
        if not math.isfinite(value):
            raise ValueError(f"{self.name}={value} is not finite: use an ordinary number")
        return float(value)


class FrameWidget(anywidget.AnyWidget):
    """A widget whose picture for each setting is one frame, computed by Python.

    A subclass names its ``settings`` (traits), which of them a frame and a problem depend on,
    and says what ``choices`` the sliders offer, what ``frame`` there is for a setting, and
    which ``problem`` forbids it.
    """

    settings: tuple[str, ...] = ()
    frame_settings: tuple[str, ...] = ()  # in the order of a frame's key
    problem_settings: tuple[str, ...] = ()

    _settings = traitlets.Dict().tag(sync=True)  # the three tuples above
    _choices = traitlets.Dict().tag(sync=True)  # setting -> values of its slider
    _labels = traitlets.Dict().tag(sync=True)  # names of the entries of an array, by its name
    _frames = traitlets.Bytes().tag(sync=True)  # the frames of all valid choices, end to end
    # What the arrays of a frame are: name, dtype and shape of each.
    _layouts: traitlets.List = traitlets.List().tag(sync=True)
    # Places of a choice on the sliders, as "2,0" -> its start in _frames, its place in _layouts
    _index = traitlets.Dict().tag(sync=True)
    _problems = traitlets.Dict().tag(sync=True)  # such places -> why this choice is impossible
    _live = traitlets.Bytes().tag(sync=True)  # the frame that the kernel computed last
    _live_layout: traitlets.List = traitlets.List().tag(sync=True)
    _live_settings = traitlets.Dict().tag(sync=True)  # what it belongs to
    _live_problem = traitlets.Unicode().tag(sync=True)  # why there is no such frame
    _picture = traitlets.Unicode().tag(sync=True)  # HTML, for pages read without JavaScript

    def choices(self):
        """Return the values of each setting's slider, by setting."""
        raise NotImplementedError

    def frame(self, **settings):
        """Return the arrays that the front-end draws, by the names that it knows them by."""
        raise NotImplementedError

    def problem(self, **settings):
        """Return why these settings are impossible, or an empty string."""
        raise NotImplementedError

    def picture(self):
        """Return the present setting as static HTML with a text equivalent."""
        raise NotImplementedError

    def current(self, names=None):
        """Return the settings as they are now, or those of them that are named."""
        return {name: getattr(self, name) for name in (self.settings if names is None else names)}

    def current_problem(self):
        """Return why the present settings are impossible, or an empty string."""
        return self.problem(**self.current(self.problem_settings))

    def recompute(self):
        """Compute all frames again, after the data behind them changed."""
        choices = self.choices()
        problems = {}
        for places, settings in combinations(choices, self.problem_settings):
            if problem := self.problem(**settings):
                problems[places] = problem
        frames, layouts, index, start = [], [], {}, 0
        for places, settings in combinations(choices, self.frame_settings):
            involved = {k: v for k, v in settings.items() if k in self.problem_settings}
            if len(involved) == len(self.problem_settings) and self.problem(**involved):
                continue
            layout, frame = packed(self.frame(**settings))
            if layout not in layouts:
                layouts.append(layout)
            frames.append(frame)
            index[places] = [start, layouts.index(layout)]
            start += len(frame)
        with self.hold_sync():
            self._settings = {
                "all": self.settings,
                "frame": self.frame_settings,
                "problem": self.problem_settings,
            }
            self._choices, self._index, self._problems = choices, index, problems
            self._frames, self._layouts = b"".join(frames), layouts
            self._compute_live()
            self._picture = self.picture()

    def follow_settings(self, *also):
        """Compute a frame whenever a setting changes, from either side, and the picture with it.

        Parameters
        ----------
        *also : str
            Other traits that the picture shows.
        """
        self.observe(self._compute_live, list(self.settings))
        self.observe(self._draw_picture, [*self.settings, *also])

    def _draw_picture(self, change):
        self._picture = self.picture()

    def _compute_live(self, change=None):
        problem = self.current_problem()
        settings = self.current(self.frame_settings)
        with self.hold_sync():
            self._live_settings = self.current()
            self._live_problem = problem
            self._live_layout, self._live = packed({} if problem else self.frame(**settings))

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in self.current().items())
        return f"{type(self).__name__}({shown})"


def combinations(choices, names):
    """Yield every combination of the choices for the settings named, after its places in them."""
    for pairs in itertools.product(*(enumerate(choices[name]) for name in names)):
        places = ",".join(str(place) for place, _ in pairs)
        yield places, {name: value for name, (_, value) in zip(names, pairs, strict=True)}


def packed(arrays):
    """Return name, dtype and shape of each array, and the bytes of all, end to end."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    return layout, b"".join(array.tobytes() for array in arrays.values())


def reason(check, *arguments):
    """Return the message of the error that a check raises, or an empty string."""
    try:
        check(*arguments)
    except ValueError as error:
        return str(error)
    return ""
