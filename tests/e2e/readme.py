import os

from e2b import CommandExitException, Sandbox, TimeoutException

sbx = Sandbox.create(envs={"COLOUR": "grey"}, metadata={"purpose": "a=b&c"})
sbx.files.write("hello.py", "print(sum(range(10)))")
assert sbx.commands.run("python3 hello.py").stdout == "45\n"
assert sbx.commands.run("echo $COLOUR").stdout == "grey\n"

try:
    sbx.commands.run("echo no >&2; exit 7")
    raise AssertionError("an exit code of 7 is an exception")
except CommandExitException as error:
    assert (error.exit_code, error.stderr) == (7, "no\n"), error

try:
    sbx.commands.run("sleep 20", timeout=1)
    raise AssertionError("a command over its time is an exception")
except TimeoutException:
    pass

data = os.urandom(3_000_000)
sbx.files.write("blob", data)
assert bytes(sbx.files.read("blob", format="bytes")) == data
assert sbx.files.get_info("blob").owner == "user"
assert [entry.name for entry in sbx.files.list("/home/user") if entry.name == "blob"] == ["blob"]

background = sbx.commands.run("cat", background=True, stdin=True, timeout=0)
sbx.commands.send_stdin(background.pid, "typed")
sbx.commands.close_stdin(background.pid)
assert background.wait().stdout == "typed"

again = Sandbox.connect(sbx.sandbox_id)
assert again.is_running()
assert again.get_info().metadata == {"purpose": "a=b&c"}
listed = Sandbox.list().next_items()
assert [item.sandbox_id for item in listed] == [sbx.sandbox_id], listed
assert sbx.kill() is True
assert sbx.kill() is False
assert not again.is_running()
print("all well")
