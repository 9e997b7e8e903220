"""Display data of a kernel in the form that clients expect."""

from __future__ import annotations

from typing import Any

_MEMBERS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}


def result_of(data: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"extra": {}}
    for kind, value in data.items():
        member = _MEMBERS.get(kind)
        if member is None:
            result["extra"][kind] = value
        else:
            result[member] = value if member in ("json", "data", "chart") else _text(value)
    if "text" in result:
        result["text"] = _without_quotes(result["text"])
    return result


def _text(value: Any) -> str:
    """Notebooks may have text as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def _without_quotes(text: str) -> str:
    """A string prints without its quotes."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text
