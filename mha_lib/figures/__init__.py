"""What the book draws with matplotlib and SVG, its tables, and the measurement of speed.

`mha_lib.figures.plots` has the figures of the chapters; it alone needs matplotlib.
"""

from mha_lib.figures.diagram import MechanismDiagram
from mha_lib.figures.palette import head_colour, ink
from mha_lib.figures.speed import measured
from mha_lib.figures.table import Table

__all__ = ["MechanismDiagram", "Table", "head_colour", "ink", "measured"]
