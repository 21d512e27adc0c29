"""What the book draws with matplotlib and SVG, and the measurement of speed that it shows.

`mha_lib.figures.plots` has the figures of the chapters; it alone needs matplotlib.
"""

from mha_lib.figures.diagram import MechanismDiagram
from mha_lib.figures.palette import head_colour, ink
from mha_lib.figures.speed import measured

__all__ = ["MechanismDiagram", "head_colour", "ink", "measured"]
