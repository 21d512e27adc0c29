"""Which tests of the grader stay together."""

import pytest


@pytest.hookimpl(tryfirst=True)  # xdist's own hook reads the group
def pytest_collection_modifyitems(items):
    """Start the one long run of the grader first, and keep all who look at it with its worker."""
    items.sort(key=lambda item: "batch" not in getattr(item, "fixturenames", ()))
    for item in items:
        if "batch" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("batch"))
