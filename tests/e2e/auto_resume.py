"""A paused sandbox that traffic wakes, as the official Python client sees it."""

import time

from e2b import Sandbox
from e2b.exceptions import SandboxNotRunningException

sandbox = Sandbox.create(timeout=300, lifecycle={"on_timeout": "pause", "auto_resume": True})
sandbox.files.write("kept", "here")
running = sandbox.commands.run("sleep 1000", background=True, timeout=0)
sandbox.pause()

# The pause cut the stream, and the client asks the sandbox's health to find out why: that wakes nothing.
try:
    running.wait()
    raise SystemExit("the stream of a paused sandbox ended as if all were well")
except SandboxNotRunningException:
    pass
assert sandbox.get_info().state.value == "paused", sandbox.get_info().state

# Work wakes it, and what ran in it runs on.
assert sandbox.commands.run("cat kept").stdout == "here"
assert sandbox.get_info().state.value == "running"
assert running.pid in [process.pid for process in sandbox.commands.list()]

# Some time after a pause, a question for its health is traffic like any other.
sandbox.pause()
assert not sandbox.is_running()
time.sleep(10.5)
assert sandbox.is_running()
sandbox.kill()
assert not sandbox.is_running()
print("all well")
