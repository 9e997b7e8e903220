"""A program of one team. It gets the id of a sandbox of another team, which stays out of reach."""

import sys

from e2b import Sandbox, SandboxException, SandboxNotFoundException, Volume

foreign, foreign_volume = sys.argv[1:]
own = Sandbox.create(metadata={"by": "python"})
assert own.commands.run("echo own").stdout == "own\n"
ids = {item.sandbox_id for item in Sandbox.list().next_items()}
assert own.sandbox_id in ids and foreign not in ids, ids
for attempt in (lambda: Sandbox.connect(foreign), lambda: Sandbox.get_info(foreign)):
    try:
        attempt()
        raise AssertionError("a sandbox of another team is reached")
    except SandboxNotFoundException:
        pass
assert Sandbox.kill(foreign) is False
assert all(volume.volume_id != foreign_volume for volume in Volume.list())
try:
    Sandbox.create(volume_mounts={"/mnt/v": foreign_volume})
    raise AssertionError("a volume of another team is mounted")
except SandboxException:
    pass
assert own.kill()
print("all well")
