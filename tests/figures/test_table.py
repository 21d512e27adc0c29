import numpy as np
import pytest

from mha_lib.figures import Table

ROWS = [
    {"heads": 1, "task": "fetch & mean", "error": 0.74999, "exact": True, "entries": 1024},
    {"heads": np.int64(13), "task": "<mean>", "error": -1e-9, "exact": np.False_, "entries": None},
]


def test_text_is_lined_up():
    assert repr(Table(ROWS, digits={"error": 2}, caption="Two seeds")).splitlines() == [
        "Two seeds",
        "heads  task          error  exact  entries",
        "    1  fetch & mean   0.75  yes      1,024",
        "   13  <mean>         0.00  no           -",
    ]


def test_html_names_rows_and_columns():
    html = Table(ROWS, digits=2, caption="n < 5")._repr_html_()
    assert "<caption>n &lt; 5</caption>" in html
    assert html.count('<th scope="col"') == 5
    assert html.count('<th scope="row">') == 2
    assert (
        '<td class="words">&lt;mean&gt;</td><td>0.00</td><td class="words">no</td><td>-</td>'
        in html
    )


@pytest.mark.parametrize("missing", ["not a number", "infinite"])
def test_what_is_no_number_is_shown_as_such(missing):
    value = np.nan if missing == "not a number" else -np.inf
    assert repr(Table([{"error": value}])).splitlines()[1].strip() in ("nan", "-inf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([[]], "rows is empty: give at least one row"),
        ([[{"a": 1}, {"b": 2}]], r"rows\[1\] has the headings \['b'\], but rows\[0\] has \['a'\]"),
        ([[{"a": 1}], {"b": 2}], r"digits names \['b'\], but the headings are \['a'\]"),
        ([[{"a": 1}], -1], "digits=-1"),
    ],
)
def test_errors_say_how_to_mend_them(arguments, message):
    with pytest.raises(ValueError, match=message):
        Table(*arguments)
