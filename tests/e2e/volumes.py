import asyncio
import os
import uuid

from e2b import AsyncVolume, Sandbox, Volume
from e2b.exceptions import NotFoundException
from e2b.volume.types import VolumeFileType

name = f"py-{uuid.uuid4()}"
volume = Volume.create(name)
assert [v.name for v in Volume.list() if v.volume_id == volume.volume_id] == [name]
made = volume.make_dir("/a/b", force=True, mode=0o750)
assert made.type == VolumeFileType.DIRECTORY and made.mode & 0o777 == 0o750, made
written = volume.write_file("/a/b/text", "héllo")
assert written.size == 6, written
assert volume.read_file("/a/b/text") == "héllo"
assert volume.read_file("/a/b/text", format="bytes") == "héllo".encode()
assert b"".join(volume.read_file("/a/b/text", format="stream")) == "héllo".encode()
volume.write_file("/a/b/text", b"second", force=True)
assert sorted(e.path for e in volume.list("/", depth=3)) == ["/a", "/a/b", "/a/b/text"]
assert volume.update_metadata("/a/b/text", mode=0o600).mode & 0o777 == 0o600
try:
    volume.read_file("/none")
    raise AssertionError("there is no such file")
except NotFoundException:
    pass
assert volume.exists("/a/b/text") and not volume.exists("/a/none")

sandbox = Sandbox.create(volume_mounts={"/mnt/v": name})
info = sandbox.get_info()
assert info.volume_mounts == [{"name": name, "path": "/mnt/v"}], info
sandbox.commands.run("echo inside > /mnt/v/inside")
assert volume.read_file("/inside") == "inside\n"
volume.remove("/a")
assert sandbox.commands.run("ls /mnt/v").stdout == "inside\n"
sandbox.kill()


async def asynchronous() -> None:
    same = await AsyncVolume.connect(volume.volume_id)
    await same.write_file("/async", b"x" * 3_000_000)
    assert len(await same.read_file("/async", format="bytes")) == 3_000_000


asyncio.run(asynchronous())
assert Volume.destroy(volume.volume_id) is True
assert Volume.destroy(volume.volume_id) is False
print("all well")
