"""A context: a kernel with the state that executions leave in it. Executions of a context run one after the other."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from jupyter_client.kernelspec import KernelSpecManager

from .execution import Execution
from .kernel import Kernel, KernelEnded
from .languages import Variables, language_of

INTERRUPT_SECONDS = 4.0
"""How long an interrupted kernel may go on before it is restarted."""
FetchVariables = Callable[["str | None"], Awaitable["dict[str, str] | None"]]
log = logging.getLogger(__name__)


class Context:
    def __init__(self, context_id: str, language: str, cwd: str, *, specs: KernelSpecManager, fetch: FetchVariables) -> None:
        self.id, self.language, self.cwd = context_id, language, cwd
        self._specs, self._fetch = specs, fetch
        self._kernel: Kernel | None = None
        self._turn = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._current: Execution | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._variables: dict[str, str] | None = None
        self._count = 0
        self._note = ""
        self._is_removed = False

    def describe(self) -> dict[str, str]:
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def start(self) -> None:
        async with self._starting:
            if self._kernel is None and not self._is_removed:
                kernel = await Kernel.start(self._specs, language_of(self.language).kernel, self.cwd)
                self._kernel, self._variables, self._count = kernel, None, 0
                self._watch = asyncio.create_task(self._restart_when_ended(kernel))

    async def warm_up(self) -> None:
        """Loads what the first execution would have to load, so that the memory image of a template contains it."""
        await self._fetch(None)
        if self._kernel is not None:
            await self._kernel.run(language_of(self.language).warm_up, lambda _message: None, silent=True)

    async def _restart_when_ended(self, kernel: Kernel) -> None:
        how = await asyncio.shield(kernel.ended)
        log.warning("context %s: the kernel %s", self.id, how)
        await self._replace(kernel, how)

    async def _replace(self, kernel: Kernel, how: str) -> None:
        """A kernel that ends by itself is started again, and the next execution says so."""
        async with self._starting:
            if self._kernel is kernel:
                self._kernel = None
                self._note = f"The kernel {how} and was started again. Its variables are gone.\n"
                await kernel.kill()
        with suppress(Exception):  # The next execution tries again, and has the error.
            await self.start()

    async def _end_kernel(self) -> None:
        kernel, self._kernel = self._kernel, None
        if self._watch is not None:
            self._watch.cancel()
        if kernel is not None:
            await kernel.kill()

    async def restart(self) -> None:
        if self._current is not None:
            self._current.error("ContextRestarting", "The context was restarted during the execution.")
            self._current.end()
        async with self._starting:
            await self._end_kernel()
        self._note = ""
        await self.start()

    async def remove(self) -> None:
        self._is_removed = True
        if self._current is not None:
            self._fail_removed(self._current)
        async with self._starting:
            await self._end_kernel()

    def _fail_removed(self, execution: Execution) -> None:
        execution.error("ExecutionAborted", f"Context {self.id} was removed.")
        execution.end()

    def execute(self, execution: Execution) -> None:
        """Starts an execution, or lets it wait for its turn. It ends by itself, also when its client has gone."""
        task = asyncio.create_task(self._execute(execution))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, execution: Execution) -> None:
        async with self._turn:
            if execution.is_abandoned.is_set():
                return
            self._current = execution
            try:
                await self._run(execution)
            except Exception as error:
                log.exception("context %s: an execution failed", self.id)
                execution.error("UnexpectedEndOfExecution", str(error) or type(error).__name__)
            finally:
                self._current = None
                execution.end()

    async def _run(self, execution: Execution) -> None:
        if self._is_removed:
            self._fail_removed(execution)
            return
        await self.start()
        kernel = self._kernel
        if kernel is None:
            self._fail_removed(execution)
            return
        if self._note:
            execution.output("stderr", self._note)
            self._note = ""
        leave = asyncio.create_task(self._interrupt_when_abandoned(execution, kernel))
        try:
            assign = await self._assignment(execution)
            self._count += 1
            execution.begin(self._count, kernel.hold, kernel.release)
            await kernel.run(execution.code, execution.on_message, fence=language_of(self.language).fence, before=assign)
            kernel.release()
            leave.cancel()
            execution.end()
            await self._unset_variables(kernel, execution)
        except KernelEnded as error:
            await self._report_end(kernel, execution, error)
        finally:
            leave.cancel()

    async def _report_end(self, kernel: Kernel, execution: Execution, error: KernelEnded) -> None:
        if self._is_removed:
            self._fail_removed(execution)
            return
        await self._replace(kernel, str(error))
        if not execution.has_ended and not execution.is_abandoned.is_set():
            self._note = ""
            text = f"The kernel {error} during the execution. It was started again, and its variables are gone."
            execution.error("UnexpectedEndOfExecution", text)

    async def _interrupt_when_abandoned(self, execution: Execution, kernel: Kernel) -> None:
        """Frees the context for others. A kernel that takes no notice of interrupts loses its state."""
        await execution.is_abandoned.wait()
        await kernel.interrupt()
        await asyncio.sleep(INTERRUPT_SECONDS)
        kernel.stop("did not react to an interrupt")

    async def _assignment(self, execution: Execution) -> str:
        """Code that sets the variables of the execution, the first time also those of the sandbox. Empty if there are none."""
        assign = language_of(self.language).assign
        if assign is None:
            return ""
        given: Variables = execution.env_vars
        if self._variables is None:
            self._variables = await self._fetch(execution.access_token)
            given = {**(self._variables or {}), **given}
        return assign(given) if given else ""

    async def _unset_variables(self, kernel: Kernel, execution: Execution) -> None:
        assign = language_of(self.language).assign
        if assign is None or not execution.env_vars:
            return
        initial = {**os.environ, **(self._variables or {})}
        await kernel.run(assign({name: initial.get(name) for name in execution.env_vars}), lambda _message: None, silent=True)
