"""The command `mcp-gateway`, which the SDKs run as root: `--config` for the option `mcp`, `pull` for `addMcpServer`."""

import argparse
import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from .catalog import PACKAGES, REPOSITORY, Refusal, package_of
from .install import install

STATE = Path("/etc/mcp-gateway")
TOKEN = STATE / ".token"
CONFIG = STATE / "config.json"
RUN = Path("/run/mcp-gateway")
LOGS = Path("/var/log/mcp-gateway")
STOP_S = 10


def parse_config(text: str) -> dict[str, dict]:
    """Throws Refusal for what is no configuration, before anything is installed or started."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise Refusal(f"the configuration is no JSON: {error}") from None
    if not isinstance(config, dict) or not config:
        raise Refusal("the configuration must be an object with a server at least, such as {\"time\": {}}")
    for name, options in config.items():
        if not isinstance(options, dict):
            raise Refusal(f"the options of '{name}' must be an object")
        if not REPOSITORY.fullmatch(name):
            package_of(name)
    return config


def write_secret(path: Path, text: str) -> None:
    STATE.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}.new")
    staged.unlink(missing_ok=True)
    with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    staged.rename(path)


def stop_former() -> None:
    """Ends the gateway that runs, which `kill` on its own may leave with the port for a while."""
    file = RUN / "pid"
    try:
        pid = int(file.read_text())
        if b"mcp_gateway" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return
        os.killpg(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return


def start(config: dict[str, dict], token: str) -> None:
    """Starts the gateway in the background, and returns when it serves. It replaces one that runs, which goes on after a failure."""
    RUN.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (RUN / "lock").open("w") as lock, (LOGS / "gateway.log").open("ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = subprocess.Popen(
            [sys.executable, "-m", "mcp_gateway", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps({"config": config, "token": token}).encode() + b"\n")
        server.stdin.flush()
        for line in server.stdout:
            if not line.startswith(b"{"):
                print(line.decode(errors="replace").rstrip(), flush=True)
                continue
            answer = json.loads(line)
            if answer.get("ready"):
                return
            if "error" in answer:
                raise Refusal(answer["error"])
            stop_former()
            (RUN / "pid").write_text(str(server.pid))
            server.stdin.write(b"\n")
            server.stdin.close()
        raise Refusal(f"the gateway ended at its start: see {LOGS}/gateway.log")


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mcp-gateway", description="MCP servers behind one address, http://…:50005/mcp")
    parser.add_argument("--config", metavar="JSON", help="start the servers of this object, {NAME: OPTIONS}, and serve them in the background")
    commands = parser.add_subparsers(dest="command")
    pull = commands.add_parser("pull", help="install servers, so that they start at once")
    pull.add_argument("names", nargs="+", metavar="NAME")
    commands.add_parser("list", help="show the names of the servers that can be started")
    commands.add_parser("resume", help="start what ran last, if anything did")
    commands.add_parser("serve", help="serve in the foreground, configured on standard input")
    return parser


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "list":
        print("\n".join(PACKAGES))
    elif arguments.command == "pull":
        for name in arguments.names:
            install(name, {})
    elif arguments.command == "resume":
        if CONFIG.exists() and TOKEN.exists():
            start(parse_config(CONFIG.read_text()), TOKEN.read_text())
    elif arguments.command == "serve":
        # Here, because its libraries take a second to load, which the other commands need not wait.
        from .serve import main

        return main(LOGS)
    elif arguments.config is not None:
        config = parse_config(arguments.config)
        token = os.environ.get("GATEWAY_ACCESS_TOKEN") or secrets.token_urlsafe(32)
        start(config, token)
        # After the start, so that a resume never begins with what did not start. The SDKs read the token as it is, without a line end.
        write_secret(TOKEN, token)
        write_secret(CONFIG, json.dumps(config))
        print(f"serving {', '.join(config)}")
    else:
        command_line().print_help()
        return 2
    return 0


def main() -> int:
    try:
        return run(command_line().parse_args())
    except Refusal as refusal:
        print(f"mcp-gateway: {refusal}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
