# A program of the desktop's client from PyPI: it types into a window, and sees that on the screen.
import time

from e2b_desktop import Sandbox

desktop = Sandbox.create(resolution=(1024, 768))
try:
    assert desktop.get_screen_size() == (1024, 768)
    desktop.move_mouse(300, 200)
    assert desktop.get_cursor_position() == (300, 200)
    desktop.commands.run("mousepad /home/user/typed.txt", background=True)
    deadline = time.monotonic() + 60
    title = ""
    while "typed.txt" not in title:
        assert time.monotonic() < deadline, title
        try:
            title = desktop.get_window_title(desktop.get_current_window_id())
        except Exception:
            time.sleep(0.2)
    before = desktop.screenshot()
    desktop.write("typed by the client")
    desktop.press(["ctrl", "s"])
    while not desktop.files.exists("/home/user/typed.txt") or desktop.files.read("/home/user/typed.txt").strip() != "typed by the client":
        assert time.monotonic() < deadline, "the file was not saved"
        time.sleep(0.2)
    after = desktop.screenshot()
    assert bytes(after[:4]) == b"\x89PNG" and after != before
    desktop.stream.start(require_auth=True)
    assert "vnc.html" in desktop.stream.get_url(auth_key=desktop.stream.get_auth_key())
    desktop.stream.stop()
finally:
    desktop.kill()
print("all well")
