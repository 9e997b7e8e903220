"""The MCP servers that the gateway knows by name. The names and their options are those of the SDKs' option `mcp`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOME = Path("/opt/mcp-gateway")
DATA = Path("/var/lib/mcp-gateway")
REPOSITORY = re.compile(r"github/([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9_.-]+)")

Options = Mapping[str, Any]


class Refusal(Exception):
    """The caller asked for something that the gateway cannot do. The text is for people."""


@dataclass(frozen=True)
class Package:
    """A server that a package registry has."""

    registry: str
    """`npm` or `pypi`."""
    name: str
    version: str
    program: str
    arguments: Callable[[Options], list[str]] = lambda options: []
    environment: Callable[[Options], dict[str, str]] = lambda options: {}


@dataclass(frozen=True)
class Launch:
    """How to run a server."""

    command: str
    arguments: list[str]
    environment: dict[str, str]
    directory: str


def text(options: Options, key: str) -> str:
    value = options.get(key)
    if not isinstance(value, str) or value == "":
        raise Refusal(f"the option '{key}' must be a text that is not empty")
    return value


def texts(options: Options, key: str) -> list[str]:
    values = options.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) and value != "" for value in values):
        raise Refusal(f"the option '{key}' must be a list of texts")
    return values


def keyed(variable: str, option: str = "apiKey") -> Callable[[Options], dict[str, str]]:
    return lambda options: {variable: text(options, option)}


def repository_of(options: Options) -> list[str]:
    """The server restricts itself to one repository. With several, each call names its own."""
    paths = texts(options, "paths") if "paths" in options else []
    return ["--repository", paths[0]] if len(paths) == 1 else []


OFFICIAL = "@modelcontextprotocol/server-"

PACKAGES: Mapping[str, Package] = {
    "brave": Package("npm", "@brave/brave-search-mcp-server", "2.1.4", "brave-search-mcp-server", environment=keyed("BRAVE_API_KEY")),
    "context7": Package("npm", "@upstash/context7-mcp", "4.1.1", "context7-mcp", environment=keyed("CONTEXT7_API_KEY")),
    "duckduckgo": Package("pypi", "duckduckgo-mcp-server", "0.7.0", "duckduckgo-mcp-server"),
    "exa": Package("npm", "exa-mcp-server", "3.4.1", "exa-mcp-server", environment=keyed("EXA_API_KEY")),
    "fetch": Package("pypi", "mcp-server-fetch", "2026.10.24", "mcp-server-fetch"),
    "filesystem": Package(
        "npm", f"{OFFICIAL}filesystem", "2026.8.31", "mcp-server-filesystem", arguments=lambda options: texts(options, "paths")
    ),
    "git": Package("pypi", "mcp-server-git", "2026.10.19", "mcp-server-git", arguments=repository_of),
    "memory": Package(
        "npm",
        f"{OFFICIAL}memory",
        "2026.8.31",
        "mcp-server-memory",
        environment=lambda options: {"MEMORY_FILE_PATH": str(DATA / "memory.jsonl")},
    ),
    "notion": Package(
        "npm",
        "@notionhq/notion-mcp-server",
        "2.5.2",
        "notion-mcp-server",
        environment=keyed("NOTION_TOKEN", "internalIntegrationToken"),
    ),
    "sequentialthinking": Package("npm", f"{OFFICIAL}sequential-thinking", "2026.8.31", "mcp-server-sequential-thinking"),
    "tavily": Package("npm", "tavily-mcp", "0.2.22", "tavily-mcp", environment=keyed("TAVILY_API_KEY")),
    "time": Package("pypi", "mcp-server-time", "2026.10.19", "mcp-server-time"),
}


def package_of(name: str) -> Package:
    package = PACKAGES.get(name)
    if package is None:
        known = ", ".join(PACKAGES)
        raise Refusal(
            f"this gateway has no MCP server '{name}'. It has {known}, and any repository of a server as 'github/OWNER/NAME' with a 'runCmd'"
        )
    return package
