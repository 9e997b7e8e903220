from e2b import FileNotFoundException, FilesystemEventType, Sandbox, SandboxException

CREATE, CHMOD, WRITE = FilesystemEventType.CREATE, FilesystemEventType.CHMOD, FilesystemEventType.WRITE
REMOVE, RENAME = FilesystemEventType.REMOVE, FilesystemEventType.RENAME


def told(events):
    return [(event.type, event.name) for event in events]


sbx = Sandbox.create()
sbx.files.make_dir("watched")

handle = sbx.files.watch_dir("watched")
for name in ["a", "b", "c"]:
    sbx.files.write(f"watched/{name}", "content")
    # No waiting: everything is there in the very next call.
    assert told(handle.get_new_events()) == [(CREATE, name), (CHMOD, name), (WRITE, name)]
assert handle.get_new_events() == []
sbx.files.rename("watched/a", "watched/z")
sbx.files.remove("watched/z")
assert told(handle.get_new_events()) == [(RENAME, "a"), (CREATE, "z"), (REMOVE, "z")]
sbx.commands.run("chmod 700 watched")
assert told(handle.get_new_events()) == [(CHMOD, ".")]
handle.stop()
try:
    handle.get_new_events()
    raise AssertionError("a stopped watcher has no events")
except SandboxException:
    pass

tree = sbx.files.watch_dir("watched", recursive=True, include_entry=True)
sbx.files.make_dir("watched/nested")
sbx.files.write("watched/nested/file", "content")
events = tree.get_new_events()
assert told(events) == [
    (CREATE, "nested"),
    (CHMOD, "nested"),
    (CREATE, "nested/file"),
    (CHMOD, "nested/file"),
    (WRITE, "nested/file"),
], events
assert events[-1].entry.path == "/home/user/watched/nested/file", events[-1]
assert events[-1].entry.size == 7
sbx.files.remove("watched/nested")
removed = tree.get_new_events()
assert [event.name for event in removed if event.type == REMOVE] == ["nested/file", "nested"], removed
assert all(event.entry is None for event in removed if event.type == REMOVE)
tree.stop()

try:
    sbx.files.watch_dir("nowhere")
    raise AssertionError("a missing directory is an exception")
except FileNotFoundException:
    pass

sbx.kill()
print("all well")
