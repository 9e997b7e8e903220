"""Starts the kernels of the default contexts, and then serves clients until a signal."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from .contexts import Contexts
from .http import application
from .kernel import watch_kernels

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
IDLE_SECONDS = 640
BODY_BYTES = 256 << 20


async def serve(*, port: int, address: str, home: str, agent: str) -> None:
    async def fetch(token: str | None) -> dict[str, str] | None:
        """The variables that the sandbox was created with. None if they could not be read."""
        headers = {"X-Access-Token": token} if token else {}
        try:
            answer = await AsyncHTTPClient().fetch(f"{agent}/envs", headers=headers, request_timeout=5)
            return {str(name): str(value) for name, value in json.loads(answer.body).items()}
        except Exception as error:
            logging.getLogger(__name__).debug("no variables of the sandbox: %s", error)
            return None

    watch_kernels()
    specs = KernelSpecManager(ensure_native_kernel=False)
    specs.kernel_dirs.insert(0, str(KERNELS))
    contexts = Contexts(specs=specs, home=home, fetch=fetch)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        # Whoever is answered finds kernels that run.
        await contexts.start()
        limits = {"idle_connection_timeout": IDLE_SECONDS, "max_body_size": BODY_BYTES, "max_buffer_size": BODY_BYTES}
        server = HTTPServer(application(contexts), **limits)
        sockets = bind_sockets(port, address=address)
        server.add_sockets(sockets)
        print(f"listening on port {sockets[0].getsockname()[1]}", flush=True)
        await stopped.wait()
        server.stop()
    finally:
        await contexts.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="interpreter")
    parser.add_argument("--port", type=int, default=49999)
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--home", default="/home/user", help="directory of contexts that name none")
    parser.add_argument("--agent", default="http://127.0.0.1:49983", help="address of the agent of the sandbox")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    asyncio.run(serve(**vars(given)))


if __name__ == "__main__":
    main()
