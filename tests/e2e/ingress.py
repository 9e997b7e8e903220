"""A private sandbox, as the official Python client sees it."""

import os

import httpx
from e2b import Sandbox

SERVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = "\\n".join(f"{name.lower()}: {value}" for name, value in self.headers.items()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer(("0.0.0.0", 3000), Handler).serve_forever()
"""
TOKEN = "e2b-traffic-access-token"


def get(sandbox, headers):
    # The host name of a sandbox leads to the edge only where DNS says so.
    return httpx.get(os.environ["E2B_SANDBOX_URL"], headers={"Host": sandbox.get_host(3000), **headers})


sandbox = Sandbox.create(
    timeout=300,
    network={"allow_public_traffic": False, "mask_request_host": "localhost:${PORT}"},
    lifecycle={"on_timeout": "pause", "auto_resume": True},
)
token = sandbox.traffic_access_token
assert token
sandbox.files.write("server.py", SERVER)
sandbox.commands.run("python3 server.py", background=True, timeout=0)
sandbox.commands.run("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3000))' 2>/dev/null; do sleep 0.1; done")

assert get(sandbox, {}).status_code == 403
assert get(sandbox, {TOKEN: "wrong"}).status_code == 403
answer = get(sandbox, {TOKEN: token})
assert answer.status_code == 200, answer.text
assert "host: localhost:3000" in answer.text, answer.text
assert token not in answer.text and TOKEN not in answer.text, answer.text

# The token is the same after a pause, and a request without it does not wake the sandbox.
sandbox.pause()
assert get(sandbox, {}).status_code == 403
assert get(sandbox, {TOKEN: sandbox._envd_access_token or ""}).status_code == 403
assert sandbox.get_info().state.value == "paused"
assert get(sandbox, {TOKEN: token}).status_code == 200
assert Sandbox.connect(sandbox.sandbox_id).traffic_access_token == token
sandbox.kill()

public = Sandbox.create(timeout=60)
assert public.traffic_access_token is None
public.kill()
print("all well")
