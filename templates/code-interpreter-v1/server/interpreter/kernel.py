"""One kernel: a process that runs code of one context, and the connection to it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from .languages import Fence

Message = dict[str, Any]
OnMessage = Callable[[Message], None]

START_SECONDS = 120
log = logging.getLogger(__name__)


class KernelEnded(Exception):
    """The process of the kernel has ended."""


class Kernel:
    def __init__(self, manager: AsyncKernelManager) -> None:
        self._manager = manager
        self._client = manager.client()
        self._process = manager.provisioner.process  # type: ignore[union-attr]
        self._runs: dict[str, tuple[OnMessage, asyncio.Future[None]]] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._is_held = False
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """How the process ended."""

    @staticmethod
    async def start(specs: KernelSpecManager, name: str, cwd: str) -> Kernel:
        """Starts a kernel, and returns when it answers. Raises when it cannot be started or ends at once."""
        manager = AsyncKernelManager(kernel_name=name, kernel_spec_manager=specs)
        await manager.start_kernel(cwd=cwd, stdin=asyncio.subprocess.DEVNULL)
        kernel = Kernel(manager)
        running.add(kernel)
        try:
            await asyncio.wait_for(kernel._connect(), START_SECONDS)
        except BaseException:
            await kernel.kill()
            raise
        return kernel

    async def _connect(self) -> None:
        self._client.start_channels(hb=False, stdin=False)
        self._readers = [
            asyncio.create_task(self._read(self._client.get_iopub_msg, self._on_output)),
            asyncio.create_task(self._read(self._client.get_shell_msg, lambda _message: None)),
        ]
        # Output reaches a subscriber only some time after it has connected. So ask until output about a request arrives.
        while True:
            self._runs.clear()
            answered = self._expect(self._client.kernel_info(), lambda _message: None)
            await asyncio.wait({answered, self.ended}, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
            if self.ended.done():
                raise KernelEnded(f"the kernel {self.ended.result()} while it started")
            if answered.done():
                return

    async def _read(self, receive: Callable[[], Any], on_message: OnMessage) -> None:
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("a message of a kernel could not be read")
                await asyncio.sleep(0.1)
                continue
            on_message(message)

    def _on_output(self, message: Message) -> None:
        run = self._runs.get(message["parent_header"].get("msg_id", ""))
        if run is None:
            return
        on_message, done = run
        if message["msg_type"] == "status":
            if message["content"]["execution_state"] == "idle" and not done.done():
                done.set_result(None)
        else:
            on_message(message)

    def _expect(self, request: str, on_message: OnMessage) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._runs[request] = (on_message, done)
        return done

    async def run(
        self, code: str, on_message: OnMessage, *, silent: bool = False, fence: Fence | None = None, before: str = ""
    ) -> None:
        """Runs code until the kernel is idle again. Raises KernelEnded when the process ends before.

        `before` is code that runs silently first. Nobody waits for its end, which would take another turn of the kernel.
        """
        if before:
            self._send(before, silent=True)
        request = self._send(code, silent=silent)
        try:
            await self._unless_ended(self._expect(request, on_message))
            if fence is not None and not silent:
                await self._pass(fence)
        finally:
            self._runs.pop(request, None)

    def _send(self, code: str, *, silent: bool) -> str:
        if self.ended.done():
            raise KernelEnded(self.ended.result())
        options = {"silent": silent, "store_history": not silent, "allow_stdin": False, "stop_on_error": False}
        return self._client.execute(code, **options)

    async def _unless_ended(self, done: asyncio.Future[None]) -> None:
        await asyncio.wait({done, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise KernelEnded(self.ended.result())

    async def _pass(self, fence: Fence) -> None:
        """Waits for a message that the kernel sends after all the output of what ran before."""
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_message(message: Message) -> None:
            if message["msg_type"] in (fence.message, "error") and not passed.done():
                passed.set_result(None)

        request = self._send(fence.code, silent=False)
        idle = self._expect(request, on_message)
        try:
            await self._unless_ended(passed)
            await self._unless_ended(idle)
        finally:
            self._runs.pop(request, None)

    def hold(self) -> None:
        """Stops the process until `release`: it prints faster than somebody reads."""
        if not self._is_held and not self.ended.done():
            self._is_held = True
            self._process.send_signal(signal.SIGSTOP)

    def release(self) -> None:
        if self._is_held and not self.ended.done():
            self._process.send_signal(signal.SIGCONT)
        self._is_held = False

    async def interrupt(self) -> None:
        self.release()
        if not self.ended.done():
            with suppress(ProcessLookupError):
                await self._manager.interrupt_kernel()

    def stop(self, how: str) -> None:
        """Kills a kernel that hangs. Whoever waits for its end learns why."""
        if not self.ended.done():
            self.ended.set_result(how)

    async def kill(self) -> None:
        """Ends the process with those that it has started in its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        self.look()
        await self._close()

    async def _close(self) -> None:
        running.discard(self)
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._client.stop_channels()
        self._manager.cleanup_connection_file()
        await self._manager.cleanup_resources()

    def look(self) -> None:
        """Notices that the process has ended."""
        status = self._process.poll()
        if status is None or self.ended.done():
            return
        self.ended.set_result(f"was killed by {_signal_name(-status)}" if status < 0 else f"exited with status {status}")


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


running: set[Kernel] = set()


def watch_kernels() -> None:
    """Lets every kernel notice its end. Without it, `ended` is set by `kill` only."""

    def look() -> None:
        for kernel in list(running):
            kernel.look()

    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, look)
