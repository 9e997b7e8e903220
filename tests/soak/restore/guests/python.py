"""CPython with everything that a checkpoint must carry: memory, threads, a child over pipes, connections, files in each state."""

import hashlib
import json
import mmap
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MIB = 1024 * 1024
PORT = 7000
DIR = "/home/user/soak"


def sha256(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


class Soak:
    def __init__(self):
        self.identity = os.urandom(8).hex()
        self.memory = [bytearray(os.urandom(MIB)) for _ in range(32)]
        self.table = {index: os.urandom(32) for index in range(50_000)}
        self.mark = ""
        self.problems = []
        self.ticks = 0
        self.make_files()
        self.make_child()
        self.make_connection()

    def make_files(self):
        os.makedirs(DIR, exist_ok=True)
        with open(f"{DIR}/random", "wb") as file:
            file.write(os.urandom(8 * MIB))
        with open(f"{DIR}/mapped", "wb") as file:
            file.write(bytes(4 * MIB))
        with open(f"{DIR}/mapped", "r+b") as file:
            self.mapped = mmap.mmap(file.fileno(), 4 * MIB)
        self.mapped[:] = os.urandom(4 * MIB)
        # Nobody can open this one again: it lives by its descriptor alone.
        self.deleted = open(f"{DIR}/deleted", "w+b")
        self.deleted.write(os.urandom(MIB))
        self.deleted.flush()
        os.unlink(f"{DIR}/deleted")
        self.log = open(f"{DIR}/appended", "a+", encoding="ascii")

    def make_child(self):
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        secret = os.urandom(MIB)
        self.child_hash = sha256(secret)
        if os.fork() == 0:
            while os.read(to_child, 1):
                os.write(from_child, sha256(secret).encode())
            os._exit(0)
        self.child_in, self.child_out = from_parent, to_parent

    def make_connection(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.near = socket.create_connection(listener.getsockname())
        self.far, _ = listener.accept()
        self.near.settimeout(10)
        threading.Thread(target=self.echo, daemon=True).start()

    def echo(self):
        while data := self.far.recv(65536):
            self.far.sendall(data)
        self.problems.append("the connection within the sandbox was closed")

    def tick(self):
        before = time.monotonic()
        while True:
            time.sleep(0.02)
            now = time.monotonic()
            if now < before:
                self.problems.append(f"the monotonic clock went back from {before} to {now}")
            before = now
            self.log.write(f"{self.ticks}\n")
            self.log.flush()
            self.ticks += 1

    def churn(self):
        garbage = {}
        for number in range(1 << 62):
            garbage[number % 5_000] = [str(number)] * 10
            if number % 500 == 0:
                time.sleep(0.01)

    def check(self):
        problems = list(self.problems)
        self.await_tick(problems)
        self.near.sendall(b"are you there?")
        if self.near.recv(65536) != b"are you there?":
            problems.append("the connection within the sandbox lost bytes")
        os.write(self.child_in, b"?")
        if os.read(self.child_out, 64).decode() != self.child_hash:
            problems.append("the child's memory is another")
        with open(f"{DIR}/appended", encoding="ascii") as file:
            lines = file.read().split("\n")[:-1]
        if any(line != str(index) for index, line in enumerate(lines)):
            problems.append("the appended file is not what was appended")
        with open(f"{DIR}/random", "rb") as file:
            stored = file.read()
        with open(f"{DIR}/mapped", "rb") as file:
            shared = file.read()
        self.deleted.seek(0)
        return {
            "identity": f"{self.identity} {os.getpid()}",
            "memory": sha256(*self.memory, *(self.table[index] for index in range(50_000)), self.mapped),
            "files": sha256(stored, shared, self.deleted.read()),
            "ticks": self.ticks,
            "clockMs": time.time() * 1000,
            "random": os.urandom(16).hex(),
            "mark": self.mark,
            "problems": problems,
        }

    def await_tick(self, problems):
        before, deadline = self.ticks, time.monotonic() + 10
        while self.ticks == before:
            if time.monotonic() > deadline:
                return problems.append("the timer thread stands still")
            time.sleep(0.01)


def handler_of(soak):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(json.dumps(soak.check()).encode())

        def do_POST(self):
            soak.mark = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(b"{}")

        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


def main():
    soak = Soak()
    threading.excepthook = lambda info: soak.problems.append(f"a thread ended: {info.exc_type.__name__}: {info.exc_value}")
    for work in (soak.tick, soak.churn):
        threading.Thread(target=work, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", PORT), handler_of(soak)).serve_forever()


main()
