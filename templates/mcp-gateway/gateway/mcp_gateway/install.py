"""Installs servers, each into a directory of its own, and finds out how to run them."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .catalog import DATA, HOME, REPOSITORY, Launch, Options, Package, Refusal, package_of, text

SERVERS = HOME / "servers"
# Written last: a directory without it is of an installation that was interrupted.
COMPLETE = ".complete"


@contextmanager
def _alone() -> Iterator[None]:
    """One installation at a time."""
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(what: str, command: list[str], directory: Path | None = None) -> None:
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Refusal(f"{what} failed with exit code {done.returncode}:\n{done.stdout[-4000:].strip()}")


def _install_package(package: Package, directory: Path) -> None:
    if package.registry == "npm":
        options = ["--no-audit", "--no-fund", "--loglevel=error"]
        _run(f"npm install {package.name}", ["npm", "install", *options, "--prefix", str(directory), f"{package.name}@{package.version}"])
        return
    _run("python3 -m venv", ["python3", "-m", "venv", str(directory)])
    pip = [str(directory / "bin" / "pip"), "install", "--quiet", "--no-cache-dir", f"{package.name}=={package.version}"]
    _run(f"pip install {package.name}", pip)


def _clone(name: str, options: Options, directory: Path) -> None:
    address = "https://github.com/" + name.removeprefix("github/")
    _run(f"git clone {address}", ["git", "clone", "--quiet", "--depth", "1", address, str(directory)])
    if options.get("installCmd"):
        _run(f"the 'installCmd' of {name}", ["bash", "-lc", text(options, "installCmd")], directory)


def install(name: str, options: Options) -> Path:
    """Installs a server unless it is there. Throws Refusal for an unknown one, and when the installation fails."""
    repository = REPOSITORY.fullmatch(name)
    package = None if repository else package_of(name)
    directory = SERVERS / name
    with _alone():
        if (directory / COMPLETE).exists():
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        print(f"installing {name} …", file=sys.stdout, flush=True)
        if package:
            _install_package(package, directory)
        else:
            _clone(name, options, directory)
        (directory / COMPLETE).touch()
    return directory


def launch_of(name: str, options: Options) -> Launch:
    """How to run a server, which is installed now if it was not. Throws Refusal."""
    environment = {key: value for key, value in os.environ.items() if key != "GATEWAY_ACCESS_TOKEN"}
    if REPOSITORY.fullmatch(name):
        command = text(options, "runCmd")
        given = options.get("envs", {})
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise Refusal("the option 'envs' must be an object of texts")
        directory = install(name, options)
        return Launch("bash", ["-lc", f"exec {command}" if _is_simple(command) else command], {**environment, **given}, str(directory))
    package = package_of(name)
    arguments, given = package.arguments(options), package.environment(options)
    directory = install(name, options)
    programs = directory / ("node_modules/.bin" if package.registry == "npm" else "bin")
    DATA.mkdir(parents=True, exist_ok=True)
    return Launch(str(programs / package.program), arguments, {**environment, **given}, str(DATA))
