"""One execution of code, and the events that its client receives."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timezone
from typing import Any

from .kernel import Message
from .results import result_of

KEEPALIVE_SECONDS = 5.0
HIGH_WATER = 4 << 20
LOW_WATER = 1 << 20
END = b'{"type": "end_of_execution"}\n'
KEEPALIVE = b'{"type": "keepalive"}\n'


class Execution:
    def __init__(self, code: str, env_vars: dict[str, str], access_token: str | None) -> None:
        self.code = code
        self.env_vars = env_vars
        self.access_token = access_token
        self.is_abandoned = asyncio.Event()
        """Whether the client has gone."""
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Event()
        self.has_ended = False
        self._has_error = False
        self._count: int | None = None
        self._hold: Callable[[], None] = lambda: None
        self._release: Callable[[], None] = lambda: None

    def begin(self, count: int, hold: Callable[[], None], release: Callable[[], None]) -> None:
        self._count, self._hold, self._release = count, hold, release

    def on_message(self, message: Message) -> None:
        """Turns a message of the kernel into an event."""
        kind, content = message["msg_type"], message["content"]
        if kind == "execute_input":
            self._tell_count()
        elif kind == "stream":
            self.output(content["name"], content["text"])
        elif kind in ("execute_result", "display_data"):
            self._add({"type": "result", "is_main_result": kind == "execute_result", **result_of(content["data"])})
        elif kind == "error":
            self.error(content["ename"], content["evalue"], "\n".join(content["traceback"]))

    def output(self, name: str, text: str) -> None:
        self._add({"type": name, "text": text, "timestamp": datetime.now(timezone.utc).isoformat()})

    def error(self, name: str, value: str, traceback: str = "") -> None:
        """Clients keep the last error, but the first one is the cause."""
        if not self._has_error:
            self._has_error = True
            self._add({"type": "error", "name": name, "value": value, "traceback": traceback})

    def end(self) -> None:
        if not self.has_ended:
            self._tell_count()
            self.has_ended = True
            self._lines.append(END)
            self._changed.set()

    def abandon(self) -> None:
        self.is_abandoned.set()
        self._lines.clear()
        self._size = 0
        self._changed.set()
        self._release()

    def _tell_count(self) -> None:
        if self._count is not None:
            count, self._count = self._count, None
            self._add({"type": "number_of_executions", "execution_count": count})

    def _add(self, event: dict[str, Any]) -> None:
        if self.is_abandoned.is_set() or self.has_ended:
            return
        self._tell_count()
        # In ASCII, because clients decode each chunk by itself.
        line = json.dumps(event).encode("ascii") + b"\n"
        self._lines.append(line)
        self._size += len(line)
        self._changed.set()
        if self._size > HIGH_WATER:
            self._hold()

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of the answer, with a sign of life in silence. The kernel is stopped while too many are unread."""
        while not self.is_abandoned.is_set():
            while self._lines:
                line = self._lines.popleft()
                self._size -= len(line)
                yield line
                if line is END:
                    return
                if self._size < LOW_WATER:
                    self._release()
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), KEEPALIVE_SECONDS)
            except asyncio.TimeoutError:
                yield KEEPALIVE
