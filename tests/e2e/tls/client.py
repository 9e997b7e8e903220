"""A program of a user of the PyPI SDK. Its environment has the variables of `./skerry env` of a platform with TLS, and no addresses."""

import os
import time
import urllib.error
import urllib.request

from e2b import Sandbox

sbx = Sandbox.create()
assert sbx.commands.run("echo $((6 * 7))").stdout == "42\n"

data = os.urandom(3_000_000)
sbx.files.write("data.bin", data)
assert bytes(sbx.files.read("data.bin", format="bytes")) == data
link = sbx.download_url("data.bin")
assert link.startswith(f"https://49983-{sbx.sandbox_id}.{os.environ['E2B_DOMAIN']}/"), link
with urllib.request.urlopen(link) as response:
    assert response.read() == data

sbx.files.write("page", "through TLS")
sbx.commands.run("python3 -m http.server 8000", background=True, timeout=0)
while True:
    try:
        with urllib.request.urlopen(f"https://{sbx.get_host(8000)}/page") as response:
            assert response.read() == b"through TLS"
        break
    except urllib.error.HTTPError as error:
        assert error.code == 502, error
        time.sleep(0.1)

assert sbx.kill()
print("all well")
