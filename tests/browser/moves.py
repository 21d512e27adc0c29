"""Move a widget's sliders as a reader would."""


def slider(widget, label):
    """Return the slider with this label."""
    return widget.get_by_role("slider", name=label, exact=True)


def positions(control):
    """Return how many positions a slider has."""
    return int(control.get_attribute("max")) + 1


def by_keyboard(control):
    """Go to the first position, then to each next one; yield at each."""
    control.focus()
    control.press("Home")
    yield 0
    for position in range(1, positions(control)):
        control.press("ArrowRight")
        yield position


def by_pointer(control):
    """Click each position on the track, from the last to the first; yield at each."""
    control.scroll_into_view_if_needed()
    last = positions(control) - 1
    thumb = 16  # its centre goes from half a thumb to the width less half a thumb
    for position in range(last, -1, -1):
        box = control.bounding_box()
        x = thumb / 2 + (box["width"] - thumb) * position / last
        control.click(position={"x": x, "y": box["height"] / 2})
        yield position


WAYS = {"keyboard": by_keyboard, "pointer": by_pointer}
