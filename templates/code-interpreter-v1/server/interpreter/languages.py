"""The languages that clients can name, and the statements by which variables get into their kernels."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Variables = Mapping[str, "str | None"]


@dataclass(frozen=True)
class Fence:
    """Code of a kernel that says it is idle before it has sent all results, and the message that this code sends."""

    code: str
    message: str


@dataclass(frozen=True)
class Language:
    kernel: str
    """Name of the kernel's specification."""
    assign: Callable[[Variables], str] | None = None
    """Code that sets variables, and removes those whose value is None."""
    fence: Fence | None = None
    warm_up: str = ""
    """Code that does what the first execution would do for the first time, and leaves nothing."""


def _python(variables: Variables) -> str:
    given = {name: value for name, value in variables.items() if value is not None}
    removed = [name for name, value in variables.items() if value is None]
    environ = '__import__("os").environ'
    return f"{environ}.update({given!r})\nany({environ}.pop(_, None) and False for _ in {removed!r})"


def _javascript(variables: Variables) -> str:
    return (
        f"for (const [name, value] of Object.entries({json.dumps(variables)}))"
        " value === null ? Deno.env.delete(name) : Deno.env.set(name, value);"
    )


def _bash(variables: Variables) -> str:
    lines = (f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    return "\n".join(lines)


def _java(variables: Variables) -> str:
    """Java cannot change its environment, so programs find the values among the properties."""
    lines = (
        f"System.clearProperty({json.dumps(name)});"
        if value is None
        else f"System.setProperty({json.dumps(name)}, {json.dumps(value)});"
        for name, value in variables.items()
    )
    return "\n".join(lines)


def _r(variables: Variables) -> str:
    lines = (
        f"Sys.unsetenv({json.dumps(name)})" if value is None else f"Sys.setenv(`{name}`={json.dumps(value, ensure_ascii=False)})"
        for name, value in variables.items()
    )
    return "\n".join(f"invisible({line})" for line in lines)


_PYTHON_WARM_UP = "get_ipython().display_formatter.format(1 + 1)"
_DENO_FENCE = Fence('await Deno.jupyter.broadcast("skerry_fence", {}); void 0', "skerry_fence")
LANGUAGES: Mapping[str, Language] = {
    "python": Language("skerry-python", _python, warm_up=_PYTHON_WARM_UP),
    "javascript": Language("skerry-javascript", _javascript, _DENO_FENCE, warm_up="void 0"),
    "typescript": Language("skerry-javascript", _javascript, _DENO_FENCE, warm_up="void 0"),
    "bash": Language("skerry-bash", _bash),
    "java": Language("java", _java),
    "r": Language("ir", _r),
}
ALIASES = {"js": "javascript", "ts": "typescript", "": "python"}


def normalize(language: str | None) -> str:
    name = (language or "").strip().lower()
    return ALIASES.get(name, name)


def language_of(name: str) -> Language:
    """Any other name is the name of a kernel that a user has installed."""
    return LANGUAGES.get(name) or Language(name)
