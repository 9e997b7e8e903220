"""Template builds of the official SDK, synchronous and asynchronous: copies, commands, failures, tags, and the sandboxes that start from them."""

import asyncio
import os
import tempfile
import time
import traceback
from pathlib import Path

from e2b import AsyncSandbox, AsyncTemplate, BuildException, Sandbox, Template, wait_for_port

prefix = f"pypi-{os.getpid()}"
small = {"cpu_count": 1, "memory_mb": 512}
context = Path(tempfile.mkdtemp())
(context / "src/deep").mkdir(parents=True)
for file in ("src/a.txt", "src/deep/b.txt", "src/c.md"):
    (context / file).write_text(file)
(context / "src/link.txt").symlink_to("a.txt")

check = "curl -sf localhost:8123/who; echo -$GREETING-; pwd; stat -c '%U %a' /data/deep/b.txt; readlink /data/link.txt; ls /data"
printed = "user\n--\n/app\nroot 640\na.txt\na.txt\ndeep\nlink.txt\n"


def template_of(kind):
    return (
        kind(file_context_path=context)
        .from_template("base")
        .set_envs({"GREETING": "hello"})
        .set_workdir("/app")
        .copy("src/**/*.txt", "/data", user="root", mode=0o640)
        .run_cmd(["id -un > who", "test $GREETING = hello"])
        .set_start_cmd("exec python3 -m http.server 8123", wait_for_port(8123))
    )


def failing(kind):
    template = kind().from_template("base").run_cmd("true")
    template.run_cmd("exit 3")  # this line
    return template


def assert_blamed(error):
    assert "failed to run command 'exit 3': exit status 3" in str(error), error
    lines = Path(__file__).read_text().splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    assert any(lines[frame.lineno - 1].endswith("# this line") for frame in frames if frame.filename == __file__), frames


def build_synchronously():
    logs = []
    info = Template.build(template_of(Template), f"{prefix}-sync:v1", on_build_logs=logs.append, **small)
    assert any("Template is ready" in str(entry) for entry in logs), logs
    assert Template.exists(f"{prefix}-sync") and not Template.exists(f"{prefix}-none")
    assert Template.assign_tags(f"{prefix}-sync:v1", ["stable"]).tags == ["stable"]
    assert sorted(tag.tag for tag in Template.get_tags(f"{prefix}-sync")) == ["stable", "v1"]
    Template.remove_tags(f"{prefix}-sync", "v1")
    assert [tag.build_id for tag in Template.get_tags(f"{prefix}-sync")] == [info.build_id]
    with Sandbox.create(f"{prefix}-sync:stable") as sandbox:
        assert sandbox.commands.run(check).stdout == printed
    try:
        Template.build(failing(Template), f"{prefix}-failing", **small)
        raise AssertionError("the build succeeded")
    except BuildException as error:
        assert_blamed(error)


async def build_asynchronously():
    logs = []
    info = await AsyncTemplate.build(template_of(AsyncTemplate), f"{prefix}-async:v1", on_build_logs=logs.append, **small)
    # The team has the steps of the synchronous build.
    assert sum("CACHED [builder" in str(entry) for entry in logs) == 4, logs
    assert await AsyncTemplate.exists(f"{prefix}-async")
    await AsyncTemplate.assign_tags(f"{prefix}-async:v1", "stable")
    assert {tag.build_id for tag in await AsyncTemplate.get_tags(f"{prefix}-async")} == {info.build_id}
    sandbox = await AsyncSandbox.create(f"{prefix}-async:stable")
    assert (await sandbox.commands.run(check)).stdout == printed
    await sandbox.kill()
    try:
        await AsyncTemplate.build(failing(AsyncTemplate), f"{prefix}-failing", **small)
        raise AssertionError("the build succeeded")
    except BuildException as error:
        assert_blamed(error)
    background = await AsyncTemplate.build_in_background(AsyncTemplate().from_template("base").run_cmd("sleep 1"), f"{prefix}-back", **small)
    deadline = time.monotonic() + 60
    while (status := (await AsyncTemplate.get_build_status(background)).status).value == "building" and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    assert status.value == "ready", status


build_synchronously()
asyncio.run(build_asynchronously())
print("all well")
