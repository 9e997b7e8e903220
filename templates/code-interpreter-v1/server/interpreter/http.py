"""The HTTP interface."""

from __future__ import annotations

import json
import logging
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import Application, RequestHandler

from .context import Context
from .contexts import Contexts
from .execution import Execution

log = logging.getLogger(__name__)


class Refusal(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class BadBody(Exception):
    """The body has another shape."""


class Handler(RequestHandler):
    def initialize(self, contexts: Contexts) -> None:
        self.contexts = contexts

    def set_default_headers(self) -> None:
        self.set_header("Access-Control-Allow-Origin", "*")
        self.set_header("Access-Control-Allow-Methods", "*")
        self.set_header("Access-Control-Allow-Headers", self.request.headers.get("Access-Control-Request-Headers", "*"))
        self.clear_header("Server")

    def options(self, *_path: str) -> None:
        self.set_status(204)

    def answer(self, value: Any) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))

    def body(self, **members: type) -> dict[str, Any]:
        """The members of the body that have the given types, or None for those that it lacks."""
        try:
            value = json.loads(self.request.body or b"{}")
        except ValueError as error:
            raise BadBody(f"the body is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise BadBody("the body is not an object")
        for name, kind in members.items():
            if value.get(name) is not None and not isinstance(value[name], kind):
                raise BadBody(f"{name} must be of the type {kind.__name__}")
        return {name: value.get(name) for name in members}

    def context(self, context_id: str) -> Context:
        context = self.contexts.find(context_id)
        if context is None:
            raise Refusal(404, f"Context {context_id} not found")
        return context

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        if isinstance(error, BadBody):
            self.set_status(422)
            self.answer({"detail": str(error)})
            return
        if isinstance(error, Refusal):
            self.set_status(error.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(error) if error is not None else self._reason)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, (Refusal, BadBody, StreamClosedError)):
            super().log_exception(typ, value, tb)


class Health(Handler):
    def get(self) -> None:
        self.answer("OK")


class ManyContexts(Handler):
    def get(self) -> None:
        self.answer(self.contexts.list())

    async def post(self) -> None:
        body = self.body(language=str, cwd=str)
        self.answer((await self.contexts.create(body["language"], body["cwd"])).describe())


class OneContext(Handler):
    async def delete(self, context_id: str) -> None:
        await self.contexts.remove(self.context(context_id))
        self.answer(None)


class Restart(Handler):
    async def post(self, context_id: str) -> None:
        await self.context(context_id).restart()
        self.answer(None)


class Execute(Handler):
    execution: Execution | None = None

    async def post(self) -> None:
        body = self.body(code=str, context_id=str, language=str, env_vars=dict)
        env_vars = body["env_vars"] or {}
        if body["code"] is None:
            raise BadBody("code is missing")
        if not all(isinstance(value, str) for value in env_vars.values()):
            raise BadBody("the values of env_vars must be of the type str")
        if body["context_id"] and body["language"]:
            raise Refusal(400, "Only one of context_id and language can be given")
        execution = Execution(body["code"], env_vars, self.request.headers.get("X-Access-Token"))
        context = await self._find(body["context_id"], body["language"])
        if self.request.connection.stream.closed():  # type: ignore[union-attr]
            return
        self.execution = execution
        context.execute(execution)
        # Each line is sent at once. Otherwise a short one may wait until the client has acknowledged the one before.
        self.request.connection.stream.set_nodelay(True)  # type: ignore[union-attr]
        self.set_header("Content-Type", "application/x-ndjson")
        self.set_header("Cache-Control", "no-store")
        try:
            await self.flush()
            async for line in execution.lines():
                self.write(line)
                await self.flush()
        except StreamClosedError:
            execution.abandon()

    async def _find(self, context_id: str | None, language: str | None) -> Context:
        return self.context(context_id) if context_id else await self.contexts.default(language)

    def on_connection_close(self) -> None:
        if self.execution is not None:
            self.execution.abandon()


def application(contexts: Contexts) -> Application:
    given = {"contexts": contexts}
    return Application(
        [
            ("/health", Health, given),
            ("/execute", Execute, given),
            ("/contexts", ManyContexts, given),
            ("/contexts/([^/]+)", OneContext, given),
            ("/contexts/([^/]+)/restart", Restart, given),
        ],
        compress_response=False,
        log_function=lambda handler: log.debug("%s %s", handler.request.method, handler.request.path),
    )
