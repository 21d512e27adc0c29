"""Move a widget's sliders as a reader would, and read what it shows."""

import numpy as np
import pytest

from mha_lib.figures.palette import WEIGHT_COLOURS


def slider(widget, label):
    """Return the slider with this label."""
    return widget.get_by_role("slider", name=label, exact=True)


def settings(widget):
    """Return what each slider says, by its label."""
    return dict(
        widget.get_by_role("slider").evaluate_all(
            "(all) => all.map((one) => [one.labels[0].textContent, one.ariaValueText])"
        )
    )


def positions(control):
    """Return how many positions a slider has."""
    return int(control.get_attribute("max")) + 1


def by_keyboard(control):
    """Go to the first position, then to each next one; yield at each."""
    control.focus()
    for position in range(positions(control)):
        control.page.keyboard.press("ArrowRight" if position else "Home")
        assert control.input_value() == str(position)
        yield position


def by_pointer(control):
    """Click each position on the track, every other first; yield at each.

    Neighbours may be so near that the thumb of one covers the other.
    """
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    last = positions(control) - 1
    thumb = 16  # its centre goes from half a thumb to the width less half a thumb
    for position in (*range(last, -1, -2), *range(last - 1, -1, -2)):
        x = thumb / 2 + (box["width"] - thumb) * position / last
        control.page.mouse.click(box["x"] + x, box["y"] + box["height"] / 2)
        assert control.input_value() == str(position)
        yield position


WAYS = {"keyboard": by_keyboard, "pointer": by_pointer}


def put(widget, label, spoken):
    """Move a slider by keyboard to the position that says ``spoken``."""
    control = slider(widget, label)
    for _ in WAYS["keyboard"](control):
        if control.get_attribute("aria-valuetext") == spoken:
            return
    pytest.fail(f"{label} has no position {spoken}")


def pixels(canvas):
    """Return the colours of a map, (rows, columns, 4)."""
    size, data = canvas.evaluate(
        "(canvas) => { const { height, width } = canvas;"
        "const image = canvas.getContext('2d').getImageData(0, 0, width, height);"
        "return [[height, width], [...image.data]]; }"
    )
    return np.array(data).reshape(*size, 4)


def expect_map(canvas, weights, causal):
    """Compare the colours of a map with weights, (n, n); what lies ahead is left blank."""
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in WEIGHT_COLOURS])
    at = np.linspace(0, 1, len(anchors))
    expected = np.stack([np.interp(weights, at, anchors[:, i]) for i in range(3)], axis=-1)
    drawn = pixels(canvas)
    seen = np.tri(len(weights), dtype=bool) if causal else np.ones_like(weights, bool)
    np.testing.assert_allclose(drawn[seen, :3], expected[seen], atol=3)
    np.testing.assert_array_equal(drawn[..., 3], 255 * seen)
