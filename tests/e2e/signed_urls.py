"""Signed file URLs of the official SDK: with the sandbox's name in the Host field, and without it as E2B_SANDBOX_URL makes them."""

import json
import os
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from e2b import Sandbox

edge = os.environ.pop("E2B_SANDBOX_URL")
created = Sandbox.create(sandbox_url=edge)
sbx = Sandbox.connect(created.sandbox_id)
created.files.write("/home/user/with space/ü.txt", "signed")


def open_url(link, data=None, headers=None):
    url = urlsplit(link)
    if not link.startswith(edge):
        assert url.netloc == f"49983-{sbx.sandbox_id}.{os.environ['E2B_DOMAIN']}", link
    request = urllib.request.Request(f"{edge}{url.path}?{url.query}", data=data, headers={"Host": url.netloc, **(headers or {})})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def upload(link, text):
    body = f'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n{text}\r\n--b--\r\n'
    status, answer = open_url(link, body.encode(), {"Content-Type": "multipart/form-data; boundary=b"})
    return status, json.loads(answer) if status == 200 else answer


for sandbox in (sbx, created):
    for end in (None, 60):
        assert open_url(sandbox.download_url("/home/user/with space/ü.txt", use_signature_expiration=end)) == (200, "signed")
        assert open_url(sandbox.download_url("/home/user/with space/ü.txt", user="root", use_signature_expiration=end)) == (200, "signed")
        assert upload(sandbox.upload_url("up.txt", use_signature_expiration=end), "sent") == (
            200,
            [{"name": "up.txt", "path": "/home/user/up.txt", "type": "file"}],
        )
        assert open_url(sandbox.download_url("up.txt", use_signature_expiration=end)) == (200, "sent")

    assert open_url(sandbox.download_url("up.txt", use_signature_expiration=-10)) == (401, "signature is already expired")
    assert upload(sandbox.upload_url("late.txt", use_signature_expiration=-10), "x") == (401, "signature is already expired")
    assert open_url(sandbox.download_url("up.txt").replace("up.txt", "other.txt")) == (401, "invalid signature")
    assert open_url(sandbox.upload_url("up.txt")) == (401, "invalid signature")

assert created.download_url("up.txt").startswith(f"{edge}/files?")
sbx.kill()
print("all well")
