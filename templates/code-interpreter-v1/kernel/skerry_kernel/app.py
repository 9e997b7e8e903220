"""The program of the Python kernel."""

from __future__ import annotations

from typing import Any

import zmq
from ipykernel.iostream import OutStream
from ipykernel.kernelapp import IPKernelApp

from .display import register_displays

PIECE = 1 << 18


class PiecewiseStream(OutStream):
    """Sends long output in pieces, so that no message is as large as all that a program prints."""

    _unsent = 0

    def write(self, string: str) -> int:
        if not isinstance(string, str):
            return super().write(string)
        for start in range(0, len(string), PIECE):
            piece = string[start : start + PIECE]
            super().write(piece)
            self._unsent += len(piece)
            if self._unsent >= PIECE:
                self._unsent = 0
                self.flush()
        return len(string)


class KernelApp(IPKernelApp):
    outstream_class = "skerry_kernel.app.PiecewiseStream"

    def init_iopub(self, context: Any) -> None:
        # The socket would drop what it can't send. The server stops the kernel before too much is queued.
        context.setsockopt(zmq.SNDHWM, 0)
        super().init_iopub(context)

    def init_shell(self) -> None:
        super().init_shell()
        if self.shell is not None:
            register_displays(self.shell)
