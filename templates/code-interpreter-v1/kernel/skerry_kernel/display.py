"""Displays of the kernel: data frames as data, figures as charts, lists and dicts as JSON, saved images as images."""

from __future__ import annotations

import json
import sys
from typing import Any

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

JSON_BYTES = 8 << 20


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, obj: Any) -> dict[str, Any] | None:
        """Figures are not registered, because Matplotlib's back end removes them from every formatter."""
        figure = sys.modules.get("matplotlib.figure")
        if figure is None or not isinstance(obj, figure.Figure):
            return super().__call__(obj)
        try:
            from .charts import chart_of_figure

            return chart_of_figure(obj)
        except Exception:  # A figure that is no known chart still has its picture.
            return None


def register_displays(shell: Any) -> None:
    formatters = shell.display_formatter.formatters
    data = DataFormatter(parent=shell.display_formatter)
    data.for_type_by_name("pandas.core.frame", "DataFrame", data_of_frame)
    data.for_type_by_name("pandas", "DataFrame", data_of_frame)
    chart = ChartFormatter(parent=shell.display_formatter)
    formatters[data.format_type] = data
    formatters[chart.format_type] = chart
    for kind in (list, dict):
        formatters["application/json"].for_type(kind, json_of)
    _show_saved_images()


def json_of(value: Any) -> Any:
    """The value if it can be sent as JSON."""
    try:
        return value if len(json.dumps(value, allow_nan=False)) <= JSON_BYTES else None
    except (TypeError, ValueError, RecursionError):
        return None


def data_of_frame(frame: Any) -> dict[str, list[Any]]:
    """Each column as a list. Times become ISO 8601, and what JSON lacks becomes text or null."""
    return {str(name): [_plain(value) for value in frame.iloc[:, index].tolist()] for index, name in enumerate(frame.columns)}


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return json_of(value) if isinstance(value, (list, dict)) else str(value)


def _show_saved_images() -> None:
    """An image that a program saves to a path is a result, except those that Matplotlib saves."""
    try:
        from PIL import Image
    except ImportError:
        return
    from IPython.display import display

    save = Image.Image.save

    def save_and_show(self: Any, fp: Any, *args: Any, **kwargs: Any) -> None:
        save(self, fp, *args, **kwargs)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if not hasattr(fp, "write") and not caller.startswith("matplotlib"):
            display(self)

    Image.Image.save = save_and_show
