"""Drawing: charts as plain SVG, for reports, the app, notebooks, studies, demos and the documentation.

A chart is a frozen value with its rows; ``draw(width)`` gives its SVG. Colours are those of the light theme: the style
sheets of the pages replace them for the dark theme. Names of the data enter as escaped text only.
"""

from sfumato.drawing.axes import AxisScale, legend, nice_ticks, x_axis, y_axis
from sfumato.drawing.bars import BarChart, BarRow, ColumnChart, ColumnRow
from sfumato.drawing.cells import Cell, Cells
from sfumato.drawing.chart import CHARTS, Chart, chart_from_dict
from sfumato.drawing.intervals import Dot, Intervals
from sfumato.drawing.lines import Lines, Panels, Place
from sfumato.drawing.marks import Drawing

__all__ = [
    "CHARTS",
    "AxisScale",
    "BarChart",
    "BarRow",
    "Cell",
    "Cells",
    "Chart",
    "ColumnChart",
    "ColumnRow",
    "Dot",
    "Drawing",
    "Intervals",
    "Lines",
    "Panels",
    "Place",
    "chart_from_dict",
    "legend",
    "nice_ticks",
    "x_axis",
    "y_axis",
]
