"""What a Matplotlib figure shows, as data."""

from __future__ import annotations

import re
from typing import Any

SCALES = {"linear", "log", "symlog", "logit", "function", "functionlog", "asinh"}
Chart = dict[str, Any]


def chart_of_figure(figure: Any) -> Chart:
    """A chart for the axes of the figure, a superchart for several, and an empty dict if nothing is drawn."""
    charts = [chart_of_axes(axes) for axes in figure.get_axes() if _is_drawn(axes)]
    if len(charts) <= 1:
        return charts[0] if charts else {}
    title = figure._suptitle.get_text() if figure._suptitle is not None else None
    return {"type": "superchart", "title": title or None, "elements": charts}


def _is_drawn(axes: Any) -> bool:
    return bool(axes.lines or axes.collections or axes.patches or axes.containers or axes.images or axes.texts)


def chart_of_axes(axes: Any) -> Chart:
    from matplotlib.container import BarContainer
    from matplotlib.patches import Wedge

    title = axes.get_title() or None
    if any(isinstance(patch, Wedge) for patch in axes.patches):
        return {"type": "pie", "title": title, "elements": _pie(axes)}
    labels = _labels(axes)
    boxes = _boxes(axes)
    if boxes:
        return {"type": "box_and_whisker", "title": title, **labels, "elements": boxes}
    bars = [container for container in axes.containers if isinstance(container, BarContainer)]
    if bars:
        return {"type": "bar", "title": title, **labels, "elements": _bars(axes, bars)}
    if axes.lines:
        elements = [{"label": _label(line), "points": _points(axes, line.get_xdata(), line.get_ydata())} for line in axes.lines]
        return {"type": "line", "title": title, **labels, **_scales(axes), "elements": elements}
    scattered = [one for one in axes.collections if type(one).__name__ == "PathCollection"]
    if scattered:
        elements = [{"label": _label(one), "points": _points(axes, *one.get_offsets().T)} for one in scattered]
        return {"type": "scatter", "title": title, **labels, **_scales(axes), "elements": elements}
    return {"type": "unknown", "title": title, "elements": []}


def _labels(axes: Any) -> Chart:
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": _unit(x), "y_unit": _unit(y)}


def _unit(label: str | None) -> str | None:
    found = re.search(r"\(([^()]+)\)|\[([^\[\]]+)\]", label or "")
    return (found[1] or found[2]) if found else None


def _label(artist: Any) -> str:
    """Matplotlib gives artists without a label a name with an underscore."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _scales(axes: Any) -> Chart:
    found: Chart = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        found[f"{name}_ticks"] = [_value(axis, tick) for tick in axis.get_majorticklocs()]
        found[f"{name}_tick_labels"] = [label.get_text() for label in axis.get_majorticklabels()]
        found[f"{name}_scale"] = _scale(axis)
    return found


def _scale(axis: Any) -> str:
    if _is_dated(axis):
        return "datetime"
    if _categories(axis) is not None:
        return "categorical"
    scale = axis.get_scale()
    return scale if scale in SCALES else "unknown"


def _is_dated(axis: Any) -> bool:
    return "Date" in type(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter).__name__


def _categories(axis: Any) -> dict[float, str] | None:
    mapping = getattr(axis.units, "_mapping", None)
    return None if mapping is None else {float(place): str(name) for name, place in mapping.items()}


def _value(axis: Any, value: Any) -> Any:
    """A number, the ISO form of a time, or the name of a category."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ == "datetime64":
        return str(value.astype("datetime64[s]"))
    if isinstance(value, str):
        return value
    number = float(value)
    if _is_dated(axis):
        from matplotlib.dates import num2date

        return num2date(number).isoformat()
    category = (_categories(axis) or {}).get(number)
    if category is not None:
        return category
    return number if number == number and abs(number) != float("inf") else None


def _points(axes: Any, xs: Any, ys: Any) -> list[list[Any]]:
    return [[_value(axes.xaxis, x), _value(axes.yaxis, y)] for x, y in zip(xs, ys)]


def _bars(axes: Any, containers: list[Any]) -> list[Chart]:
    found = []
    for container in containers:
        is_upright = container.orientation != "horizontal"
        axis = axes.xaxis if is_upright else axes.yaxis
        names = {round(place, 6): text for place, text in zip(axis.get_majorticklocs(), _tick_texts(axis))}
        for bar in container.patches:
            middle = bar.get_x() + bar.get_width() / 2 if is_upright else bar.get_y() + bar.get_height() / 2
            value = bar.get_height() if is_upright else bar.get_width()
            category = _value(axis, middle)
            label = category if isinstance(category, str) else names.get(round(middle, 6)) or f"{middle:g}"
            found.append({"label": label, "group": _label(container), "value": float(value)})
    return found


def _tick_texts(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_majorticklabels()]


def _pie(axes: Any) -> list[Chart]:
    from matplotlib.patches import Wedge

    wedges = [patch for patch in axes.patches if isinstance(patch, Wedge)]
    return [{"label": _label(one), "angle": abs(float(one.theta2 - one.theta1)), "radius": float(one.r)} for one in wedges]


def _boxes(axes: Any) -> list[Chart]:
    """Boxes are lines or patches. Each one comes with its two whiskers, two caps, a median and its outliers."""
    from matplotlib.patches import PathPatch

    shapes = [patch.get_path().vertices for patch in axes.patches if type(patch) is PathPatch]
    shapes = shapes or [line.get_xydata() for line in axes.lines if len(line.get_xdata()) == 5]
    if not shapes:
        return []
    lines = [line for line in axes.lines if len(line.get_xdata()) != 5]
    return [box for index, shape in enumerate(shapes) if (box := _box(axes, lines, shape[:, :2], index)) is not None]


def _box(axes: Any, lines: list[Any], shape: Any, index: int) -> Chart | None:
    left, right = float(min(shape[:, 0])), float(max(shape[:, 0]))
    low, high = float(min(shape[:, 1])), float(max(shape[:, 1]))
    middle, half = (left + right) / 2, (right - left) / 2
    ends, medians, outliers = [low, high], [], []
    for line in lines:
        xs, ys = [float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()]
        if not xs or any(abs(x - middle) > half * 1.01 for x in xs):
            continue
        if line.get_linestyle() == "None":
            outliers += ys
        elif len(xs) == 2 and ys[0] == ys[1] and abs(xs[1] - xs[0]) > half * 1.5:
            medians.append(ys[0])
        else:
            ends += ys
    if not medians:
        return None
    ticks = dict(zip((round(float(place), 6) for place in axes.get_xticks()), _tick_texts(axes.xaxis)))
    return {
        "label": ticks.get(round(middle, 6)) or str(index + 1),
        "min": min(ends),
        "first_quartile": low,
        "median": medians[0],
        "third_quartile": high,
        "max": max(ends),
        "outliers": outliers,
    }
