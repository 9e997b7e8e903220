"""Has something of every kind that a sandbox may lose, and says afterwards what of it is still there.

`witness.py keep` stays and answers on PORT. `witness.py ask` prints what it answers, or, when it is gone, what the disk has.
"""

import hashlib
import http.server
import json
import os
import socket
import sys
import threading
import time
import urllib.request

PORT = 8000
HOME = "/home/user/witness"
SHM = "/dev/shm/witness"
SIZE = 1 << 20


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Keeper:
    def __init__(self):
        os.makedirs(HOME, exist_ok=True)
        self.nonce = os.urandom(8).hex()
        self.memory = os.urandom(4 * SIZE)
        self.shm = os.urandom(SIZE)
        with open(SHM, "wb") as file:
            file.write(self.shm)
        self.open = self.keep_open("open")
        self.deleted = self.keep_open("deleted")
        os.unlink(f"{HOME}/deleted")
        with open(f"{HOME}/sum", "w") as file:
            file.write(digest(read(f"{HOME}/open")))
        self.sums = {name: digest(self.bytes_of(name)) for name in ("memory", "shm", "open", "deleted")}
        self.answers = 0
        self.connection, self.child = self.connect_child()
        self.count = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.count_on, daemon=True).start()

    def keep_open(self, name):
        file = open(f"{HOME}/{name}", "w+b")
        file.write(os.urandom(SIZE))
        file.flush()
        return file

    def bytes_of(self, name):
        if name == "memory":
            return self.memory
        if name == "shm":
            return read(SHM)
        file = getattr(self, name)
        file.seek(0)
        return file.read()

    def connect_child(self):
        """Another process, which counts what it is asked over a TCP connection that stays."""
        listener = socket.create_server(("127.0.0.1", 0))
        child = os.fork()
        if child == 0:
            connection = socket.create_connection(listener.getsockname())
            asked = 0
            while connection.recv(1):
                asked += 1
                connection.sendall(asked.to_bytes(8, "big"))
            os._exit(0)
        connection, _ = listener.accept()
        connection.settimeout(10)
        return connection, child

    def count_on(self):
        with open(f"{HOME}/count", "w+b", buffering=0) as file:
            while True:
                self.count += 1
                os.pwrite(file.fileno(), b"%12d" % self.count, 0)
                time.sleep(0.02)

    def ask_child(self):
        try:
            self.connection.sendall(b"?")
            self.answers += 1
            return int.from_bytes(self.connection.recv(8), "big") == self.answers
        except OSError as error:
            return str(error)

    def answer(self):
        with self.lock:
            counted = self.count
            return {
                "alive": True,
                "nonce": self.nonce,
                "pid": os.getpid(),
                "processes": [os.path.exists(f"/proc/{pid}") for pid in (os.getpid(), self.child)],
                "count": counted,
                "countOnDisk": int(read(f"{HOME}/count")),
                "kept": {name: digest(self.bytes_of(name)) == sum for name, sum in self.sums.items()},
                "connection": self.ask_child(),
            }


def keep():
    keeper = Keeper()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(keeper.answer()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()


def ask():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=20) as response:
            return json.load(response)
    except OSError as error:
        return {
            "alive": False,
            "why": str(error),
            "shm": os.path.exists(SHM),
            "disk": digest(read(f"{HOME}/open")) == read(f"{HOME}/sum").decode(),
            "countOnDisk": int(read(f"{HOME}/count")),
        }


if sys.argv[1] == "keep":
    keep()
else:
    print(json.dumps(ask()))
