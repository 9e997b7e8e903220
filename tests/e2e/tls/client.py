"""A program of a user of the PyPI SDK. Its environment has the variables of `./skerry env` of a platform with TLS, and no addresses."""

import asyncio
import os
import time
import urllib.error
import urllib.request

from e2b import AsyncSandbox, Sandbox

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


def status(host, headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"https://{host}/", headers=headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


async def private_sandbox():
    """The other flavour of the SDK. The token of a private sandbox opens its ports, also while it is paused, and nothing else does."""
    locked = await AsyncSandbox.create(
        network={"allow_public_traffic": False}, lifecycle={"on_timeout": "pause", "auto_resume": True}
    )
    host, token = locked.get_host(8000), {"e2b-traffic-access-token": locked.traffic_access_token}
    await locked.files.write("data.bin", data)
    assert bytes(await locked.files.read("data.bin", format="bytes")) == data
    await locked.commands.run("python3 -m http.server 8000", background=True, timeout=0)
    while status(host, token) == 502:
        await asyncio.sleep(0.1)
    assert (status(host, token), status(host, {})) == (200, 403)
    await locked.pause()
    # On runc a pause keeps the files alone. Traffic does not wake such a sandbox, and finds none.
    assert (status(host, {}), status(host, token)) == ((502, 502) if os.environ["RUNTIME"] == "runc" else (403, 200))
    assert await locked.kill()
    assert status(host, {}) == 502


asyncio.run(private_sandbox())
print("all well")
