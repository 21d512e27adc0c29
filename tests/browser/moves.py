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
    for position in range(positions(control)):
        control.page.keyboard.press("ArrowRight" if position else "Home")
        assert control.input_value() == str(position)
        yield position


def by_pointer(control):
    """Click each position on the track, from the last to the first; yield at each."""
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    last = positions(control) - 1
    thumb = 16  # its centre goes from half a thumb to the width less half a thumb
    for position in range(last, -1, -1):
        x = thumb / 2 + (box["width"] - thumb) * position / last
        control.page.mouse.click(box["x"] + x, box["y"] + box["height"] / 2)
        assert control.input_value() == str(position)
        yield position


WAYS = {"keyboard": by_keyboard, "pointer": by_pointer}
