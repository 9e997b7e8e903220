import os
import time
import uuid

from e2b import Sandbox, SandboxException, SandboxQuery, SandboxState

key = f"create-{uuid.uuid4()}"
sbx = Sandbox.create(idempotency_key=key, envs={"COLOUR": "grey"})
again = Sandbox.create(idempotency_key=key, envs={"COLOUR": "grey"})
assert again.sandbox_id == sbx.sandbox_id
try:
    Sandbox.create(idempotency_key=key, timeout=77)
    raise AssertionError("another request with the same key is refused")
except SandboxException as error:
    assert "422" in str(error), error

sbx.files.write("kept", "1")
background = sbx.commands.run("sleep 1000", background=True, timeout=0)
assert sbx.pause(strict=True) is True
assert sbx.pause() is False
assert sbx.get_info().state == SandboxState.PAUSED
paused = Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED])).next_items()
assert [item.sandbox_id for item in paused] == [sbx.sandbox_id], paused
sbx.connect(timeout=200)
assert sbx.files.read("kept") == "1"
has_memory = any(process.pid == background.pid for process in sbx.commands.list())

sbx.pause(mode="filesystem")
sbx = Sandbox.connect(sbx.sandbox_id)
assert not any(process.pid == background.pid for process in sbx.commands.list())
sbx.pause()
sbx = Sandbox.connect(sbx.sandbox_id, on_resume="reboot")
assert sbx.files.read("kept") == "1"

snapshot = sbx.create_snapshot(name="mine:v1")
named = f"{os.environ['TEAM_SLUG']}/mine:v1"
assert snapshot.snapshot_id == named, snapshot
files_only = sbx.create_snapshot(mode="filesystem")
for reference in ("mine:v1", files_only.snapshot_id):
    made = Sandbox.create(reference)
    assert made.files.read("kept") == "1"
    assert made.kill()
listed = Sandbox.list_snapshots(sandbox_id=sbx.sandbox_id).next_items()
assert {item.snapshot_id for item in listed} == {named, files_only.snapshot_id}, listed
for item in listed:
    assert Sandbox.delete_snapshot(item.snapshot_id) is True
    assert Sandbox.delete_snapshot(item.snapshot_id) is False

forks = sbx.fork(count=2, timeout=60)
ids = set()
for fork in forks:
    assert isinstance(fork, Sandbox), fork
    assert fork.files.read("kept") == "1"
    ids.add(fork.sandbox_id)
    assert fork.kill()
assert len(ids | {sbx.sandbox_id}) == 3

sbx.kill()
short = Sandbox.create(timeout=2, lifecycle={"on_timeout": {"action": "pause", "mode": "filesystem"}})
short.files.write("kept", "2")
for _ in range(100):
    if short.get_info().state == SandboxState.PAUSED:
        break
    time.sleep(0.2)
assert Sandbox.connect(short.sandbox_id).files.read("kept") == "2"
assert short.kill() is True
assert Sandbox.list().next_items() == []
print("all well")
