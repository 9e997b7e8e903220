"""The server of the gateway: the tools of all servers at http://…:50005/mcp, for whoever has the token."""

import asyncio
import hmac
import json
import os
import sys
from collections import Counter
from pathlib import Path

import uvicorn
from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from fastmcp.server.providers.proxy import ProxyClient
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from .catalog import Launch, Refusal
from .install import launch_of

PORT = 50005
START_S = 45


class TokenCheck:
    """Answers 401 to requests without the token."""

    def __init__(self, app: ASGIApp, token: str):
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                answer = JSONResponse(
                    {"error": "this MCP gateway wants its token: 'Authorization: Bearer TOKEN', with what getMcpToken() returns"},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _connect(name: str, launch: Launch, log: Path) -> tuple[ProxyClient, list[str]]:
    """Starts a server, and returns a client of it with the names of its tools. The client starts it again if it ends."""
    transport = StdioTransport(launch.command, launch.arguments, launch.environment, launch.directory, keep_alive=True, log_file=log)
    client: ProxyClient = ProxyClient(transport)
    try:
        async with asyncio.timeout(START_S), client:
            return client, [tool.name for tool in await client.list_tools()]
    except TimeoutError:
        raise Refusal(f"the MCP server '{name}' did not answer within {START_S} s") from None
    except Exception as error:
        raise Refusal(f"the MCP server '{name}' does not start ({error}). The end of its output:\n{_end_of(log)}") from error


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:].strip() if log.exists() else ""


async def assemble(config: dict[str, dict], logs: Path) -> FastMCP:
    """All servers as one. A tool keeps its name, unless two servers have one of this name: then each has the prefix `SERVER_`."""
    launches = {name: launch_of(name, options) for name, options in config.items()}
    log_of = {name: logs / f"{name.replace('/', '_')}.log" for name in launches}
    connected = await asyncio.gather(*(_connect(name, launch, log_of[name]) for name, launch in launches.items()))
    count = Counter(tool for _, tools in connected for tool in tools)
    gateway: FastMCP = FastMCP("mcp-gateway")
    for name, (client, tools) in zip(launches, connected, strict=True):
        shared = any(count[tool] > 1 for tool in tools)
        gateway.mount(create_proxy(client), namespace=name.rsplit("/", 1)[-1] if shared else None)
    return gateway


async def _serve(config: dict[str, dict], token: str, logs: Path) -> None:
    gateway = await assemble(config, logs)
    # The gateway that ran until now keeps the port until this one can take its place.
    _report({"assembled": True})
    await asyncio.to_thread(sys.stdin.readline)
    app = gateway.http_app(path="/mcp", middleware=[Middleware(TokenCheck, token=token)])
    server = uvicorn.Server(uvicorn.Config(app, host="0.0.0.0", port=PORT, log_level="warning", timeout_graceful_shutdown=3))
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    if serving.done():
        raise Refusal(f"port {PORT} is in use")
    _report({"ready": True})
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())
    await serving


def _report(message: dict) -> None:
    """For the process that started this one, which listens until this one serves or fails."""
    os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


def main(logs: Path) -> int:
    """Serves what the first line of standard input says. When all servers run, waits for a second line before it takes the port."""
    request = json.loads(sys.stdin.readline())
    try:
        asyncio.run(_serve(request["config"], request["token"], logs))
    except (Refusal, SystemExit) as error:
        _report({"error": str(error) if isinstance(error, Refusal) else f"port {PORT} is in use"})
        return 1
    return 0
