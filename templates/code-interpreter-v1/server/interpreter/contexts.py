"""All contexts of the sandbox, oldest first."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from jupyter_client.kernelspec import KernelSpecManager

from .context import Context, FetchVariables
from .languages import normalize

FIRST_LANGUAGES = ("python", "javascript")


class Contexts:
    def __init__(self, *, specs: KernelSpecManager, home: str, fetch: FetchVariables) -> None:
        self._specs, self._home, self._fetch = specs, home, fetch
        self._contexts: dict[str, Context] = {}
        self._defaults: dict[str, Context] = {}
        self._creating: dict[str, asyncio.Lock] = {}

    async def start(self) -> None:
        for language in FIRST_LANGUAGES:
            await (await self.default(language)).warm_up()

    def list(self) -> list[dict[str, str]]:
        return [context.describe() for context in self._contexts.values()]

    def find(self, context_id: str) -> Context | None:
        return self._contexts.get(context_id)

    async def create(self, language: str | None, cwd: str | None) -> Context:
        name = normalize(language)
        context = Context(str(uuid4()), name, cwd or self._home, specs=self._specs, fetch=self._fetch)
        await context.start()
        self._contexts[context.id] = context
        return context

    async def default(self, language: str | None) -> Context:
        """The context of those who name no context. Calls at the same time get the same one."""
        name = normalize(language)
        async with self._creating.setdefault(name, asyncio.Lock()):
            if name not in self._defaults:
                self._defaults[name] = await self.create(name, None)
            return self._defaults[name]

    async def remove(self, context: Context) -> None:
        self._contexts.pop(context.id, None)
        for name, default in list(self._defaults.items()):
            if default is context:
                del self._defaults[name]
        await context.remove()

    async def close(self) -> None:
        await asyncio.gather(*(self.remove(context) for context in list(self._contexts.values())), return_exceptions=True)
