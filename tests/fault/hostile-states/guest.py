"""Holds kinds of process state that are hard to save, and says afterwards which of them are still whole.

Started without arguments it stays, and listens on a socket. With arguments (`make deleted_small`, `drop deleted_small`, `check`)
it passes them on to that one and prints its answer, one JSON object.
"""

import ctypes, errno, fcntl, hashlib, json, mmap, os, pty, select, shutil, signal, socket, struct, subprocess, sys, threading, time

BASE = "/root/held"
ASK = "/root/ask"
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p
THREADS = 250


class Broken(Exception):
    pass


def expect(what, is_so):
    if not is_so:
        raise Broken(what)


def call(name, *args):
    answer = getattr(libc, name)(*args)
    if answer == -1:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return answer


def path(name):
    return os.path.join(BASE, name)


def noise(size, seed=b"seed"):
    return hashlib.shake_128(seed).digest(size)


def opened(name, content):
    fd = os.open(path(name), os.O_RDWR | os.O_CREAT)
    os.write(fd, content)
    return fd


def content_of(fd, size):
    parts, at = [], 0
    while at < size:
        part = os.pread(fd, min(size - at, 1 << 20), at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)


STATES = {}


def state(make):
    STATES[make.__name__] = make
    return make


def deleted(name, size):
    """A file without a name, whose bytes can be read and written."""
    content = noise(size)
    fd = opened(name, content)
    os.unlink(path(name))
    while True:
        yield
        expect("its bytes", content_of(fd, size) == content and os.fstat(fd).st_size == size)
        content = bytes([content[0] ^ 255]) + content[1:]
        os.pwrite(fd, content[:1], 0)


@state
def deleted_small():
    yield from deleted("small", 1000)


@state
def deleted_large():
    yield from deleted("large", int(os.environ.get("LARGE_BYTES", 1 << 20)))


@state
def deleted_and_replaced():
    holder = deleted("replaced", 5000)
    next(holder)
    with open(path("replaced"), "w") as other:
        other.write("another one")
    while True:
        yield
        next(holder)
        expect("the other one", open(path("replaced")).read() == "another one")


@state
def deleted_with_its_folder():
    os.makedirs(path("a/b"))
    fd = opened("a/b/c", b"inner")
    folder = os.open(path("a/b"), os.O_RDONLY | os.O_DIRECTORY)
    shutil.rmtree(path("a"))
    while True:
        yield
        expect("its bytes", os.pread(fd, 100, 0) == b"inner")
        expect("its folder", os.listdir(folder) == [])


@state
def deleted_one_of_two_names():
    fd = opened("first", b"linked")
    os.link(path("first"), path("second"))
    os.unlink(path("first"))
    while True:
        yield
        expect("its bytes", os.pread(fd, 100, 0) == b"linked" and open(path("second"), "rb").read() == b"linked")


@state
def deleted_sparse():
    fd = opened("sparse", b"")
    os.truncate(fd, 1 << 20)
    os.pwrite(fd, b"end", (1 << 20) - 3)
    os.unlink(path("sparse"))
    while True:
        yield
        expect("its bytes", content_of(fd, 1 << 20) == bytes((1 << 20) - 3) + b"end")


@state
def deleted_and_mapped():
    fd = opened("mapped", b"m" * 8192)
    shared = mmap.mmap(fd, 8192)
    os.close(fd)
    os.unlink(path("mapped"))
    shared[:5] = b"dirty"
    while True:
        yield
        expect("its bytes", shared[:6] == b"dirtym" and shared[8191:] == b"m")


@state
def deleted_and_running():
    shutil.copy("/bin/sleep", path("program"))
    child = subprocess.Popen([path("program"), "100000"])
    while os.readlink(f"/proc/{child.pid}/exe") != path("program"):
        time.sleep(0.01)
    os.unlink(path("program"))
    while True:
        yield
        expect("it runs", child.poll() is None)


@state
def deleted_working_folder():
    os.mkdir(path("left"))
    child = subprocess.Popen(["sleep", "100000"], cwd=path("left"))
    os.rmdir(path("left"))
    while True:
        yield
        expect("it runs", child.poll() is None)


@state
def deleted_path_only():
    os.close(opened("only", b"1"))
    fd = os.open(path("only"), os.O_PATH)
    os.unlink(path("only"))
    while True:
        yield
        expect("it is open", os.fstat(fd).st_size == 1)


@state
def deleted_listening_socket():
    server = socket.socket(socket.AF_UNIX)
    server.bind(path("gone.sock"))
    server.listen()
    os.unlink(path("gone.sock"))
    while True:
        yield
        expect("it listens", server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1)


@state
def memfd():
    fd = os.memfd_create("held", os.MFD_ALLOW_SEALING)
    os.write(fd, b"sealed")
    fcntl.fcntl(fd, 1033, 0x8)  # F_ADD_SEALS, F_SEAL_WRITE
    while True:
        yield
        expect("its bytes", os.pread(fd, 100, 0) == b"sealed")
        expect("its seals", fcntl.fcntl(fd, 1034) == 0x8)


@state
def shared_memory_file():
    fd = os.open("/dev/shm/held", os.O_RDWR | os.O_CREAT)
    os.write(fd, noise(100_000))
    os.unlink("/dev/shm/held")
    with open("/dev/shm/named", "wb") as named:
        named.write(noise(50_000))
    while True:
        yield
        expect("its bytes", content_of(fd, 100_000) == noise(100_000))
        expect("the other's bytes", open("/dev/shm/named", "rb").read() == noise(50_000))


@state
def fifo():
    os.mkfifo(path("fifo"))
    fd = os.open(path("fifo"), os.O_RDWR)
    reader = os.open(path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
    while True:
        os.write(fd, b"in the fifo")
        yield
        expect("what was in it", os.read(reader, 100) == b"in the fifo")


@state
def pipe():
    reader, writer = os.pipe()
    while True:
        os.write(writer, noise(60_000))
        yield
        expect("what was in it", os.read(reader, 100_000) == noise(60_000))


@state
def socket_pair_with_queue():
    left, right = socket.socketpair()
    while True:
        left.sendall(noise(50_000))
        yield
        expect("what was queued", right.recv(100_000) == noise(50_000))


@state
def connection_not_accepted():
    server = socket.socket(socket.AF_UNIX)
    server.bind(path("listening.sock"))
    server.listen()
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.connect(path("listening.sock"))
        client.sendall(b"waiting")
        yield
        accepted, _ = server.accept()
        expect("what was sent", accepted.recv(100) == b"waiting")


@state
def tcp_connection_with_queue():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    while True:
        client.sendall(noise(20_000))
        yield
        got = b""
        while len(got) < 20_000:
            got += accepted.recv(100_000)
        expect("what was queued", got == noise(20_000))


@state
def descriptors_in_flight():
    left, right = socket.socketpair()
    while True:
        reader, writer = os.pipe()
        os.write(writer, b"flew")
        fd = opened("flying", b"deleted in flight")
        os.unlink(path("flying"))
        socket.send_fds(left, [b"x"], [reader, fd])
        for one in (reader, writer, fd):
            os.close(one)
        yield
        _, fds, _, _ = socket.recv_fds(right, 1, 2)
        expect("both", len(fds) == 2)
        expect("what was in the pipe", os.read(fds[0], 100) == b"flew")
        expect("the file's bytes", os.pread(fds[1], 100, 0) == b"deleted in flight")
        for one in fds:
            os.close(one)


@state
def traced_process():
    secret = ctypes.create_string_buffer(b"12345678")
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(3)
    os.waitpid(child, 0)
    while True:
        yield
        ctypes.set_errno(0)
        word = libc.ptrace(2, child, ctypes.addressof(secret), None) & (1 << 64) - 1
        expect("its memory", struct.pack("<Q", word) == b"12345678")
        expect("that it is stopped", "tracing stop" in open(f"/proc/{child}/status").read())


@state
def terminal():
    master, slave = pty.openpty()
    child = subprocess.Popen(["cat"], stdin=slave, stdout=slave, start_new_session=True)
    while True:
        os.write(slave, b"not read yet")
        yield
        expect("what was written", os.read(master, 12) == b"not read yet")
        os.write(master, b"typed\n")
        got = b""
        while got.count(b"typed") < 2:
            got += os.read(master, 100)
        expect("the program", child.poll() is None)


@state
def threads():
    wake = threading.Condition()
    heard, rounds = [0], [0]

    def wait():
        seen = 0
        while True:
            with wake:
                wake.wait_for(lambda: rounds[0] > seen)
                seen = rounds[0]
                heard[0] += 1

    for _ in range(THREADS):
        threading.Thread(target=wait, daemon=True).start()
    while True:
        yield
        with wake:
            heard[0] = 0
            rounds[0] += 1
            wake.notify_all()
        deadline = time.monotonic() + 60
        while heard[0] < THREADS and time.monotonic() < deadline:
            time.sleep(0.01)
        expect(f"all threads ({heard[0]})", heard[0] == THREADS)


@state
def timers():
    fd = call("timerfd_create", 1, 0)
    call("timerfd_settime", fd, 0, struct.pack("qqqq", 0, 50_000_000, 0, 50_000_000), None)
    far = call("timerfd_create", 1, 0)
    call("timerfd_settime", far, 0, struct.pack("qqqq", 0, 0, 100_000, 0), None)
    while True:
        yield
        for _ in range(2):
            expect("that it fires", struct.unpack("Q", os.read(fd, 8))[0] > 0)
        rest = ctypes.create_string_buffer(32)
        call("timerfd_gettime", far, rest)
        expect("what is left", 90_000 < struct.unpack("qqqq", rest.raw)[2] <= 100_000)


@state
def event_and_epoll():
    fd = os.eventfd(5)
    reader, writer = os.pipe()
    poll = select.epoll()
    poll.register(fd, select.EPOLLIN)
    poll.register(reader, select.EPOLLIN | select.EPOLLET)
    os.write(writer, b"ready")
    while True:
        yield
        ready = dict(poll.poll(10))
        expect("what is ready", fd in ready)
        expect("its count", os.eventfd_read(fd) == 5)
        os.eventfd_write(fd, 5)
        expect("what is in the pipe", os.read(reader, 5) == b"ready")
        os.write(writer, b"ready")


@state
def inotify():
    os.mkdir(path("watched"))
    fd = call("inotify_init1", 0)
    call("inotify_add_watch", fd, path("watched").encode(), 0x100)
    count = 0
    while True:
        open(path(f"watched/{count}"), "w").close()
        yield
        expect("what had happened", str(count).encode() in os.read(fd, 4096))
        open(path(f"watched/later{count}"), "w").close()
        expect("what happens", f"later{count}".encode() in os.read(fd, 4096))
        count += 1


@state
def deep_path():
    here = os.open(BASE, os.O_RDONLY)
    for _ in range(45):
        os.mkdir("d" * 100, dir_fd=here)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    fd = os.open("file", os.O_RDWR | os.O_CREAT, dir_fd=here)
    os.write(fd, b"deep")
    gone = os.open("gone", os.O_RDWR | os.O_CREAT, dir_fd=here)
    os.write(gone, b"deep and gone")
    os.unlink("gone", dir_fd=here)
    while True:
        yield
        expect("its bytes", os.pread(fd, 100, 0) == b"deep")
        expect("the deleted one's", os.pread(gone, 100, 0) == b"deep and gone")
        expect("its folder", os.listdir(here) == ["file"])


@state
def locks():
    fd = opened("locked", b"0123456789")
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_EX, 5)
    tries = "import fcntl,sys; f=open(sys.argv[1],'r+'); getattr(fcntl,sys.argv[2])(f,fcntl.LOCK_EX|fcntl.LOCK_NB)"
    while True:
        yield
        for kind in ("flock", "lockf"):
            other = subprocess.run([sys.executable, "-c", tries, path("locked"), kind], capture_output=True)
            expect(f"the lock of {kind}", b"BlockingIOError" in other.stderr)


@state
def pending_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
    while True:
        yield
        expect("that it is pending", signal.SIGUSR1 in signal.sigpending())


@state
def system_v():
    private = 0
    memory = call("shmget", private, 4096, 0o600)
    at = libc.shmat(memory, None, 0)
    ctypes.memmove(at, b"shared", 6)
    call("shmctl", memory, 0, None)
    queue = call("msgget", private, 0o600)
    count = call("semget", private, 1, 0o600)
    call("semctl", count, 0, 16, 7)
    while True:
        call("msgsnd", queue, struct.pack("l8s", 1, b"in queue"), 8, 0)
        yield
        expect("the memory", ctypes.string_at(at, 6) == b"shared")
        got = ctypes.create_string_buffer(16)
        call("msgrcv", queue, got, 8, 0, 0)
        expect("the message", got.raw[8:16] == b"in queue")
        expect("the semaphore", call("semctl", count, 0, 12) == 7)


@state
def large_queues():
    count = int(os.environ.get("LARGE_QUEUES", 2))
    pairs = []
    for _ in range(count):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
        os.set_blocking(reader, False)
        pairs.append((reader, writer))
    for _ in range(count):
        left, right = socket.socketpair()
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        right.setblocking(False)
        pairs.append((right.detach(), left.detach()))
    content = noise(1 << 18)
    while True:
        for _, writer in pairs:
            os.write(writer, content)
        yield
        for reader, _ in pairs:
            got = b""
            while len(got) < len(content):
                got += os.read(reader, len(content))
            expect("what was queued", got == content)


# States that gVisor cannot save. `drop` closes what they hold.


@state
def refused_fifo():
    os.mkfifo(path("refused_fifo"))
    fd = os.open(path("refused_fifo"), os.O_RDWR)
    os.unlink(path("refused_fifo"))
    yield from held([fd])


@state
def refused_link():
    os.symlink("nowhere", path("refused_link"))
    fd = os.open(path("refused_link"), os.O_PATH | os.O_NOFOLLOW)
    os.unlink(path("refused_link"))
    yield from held([fd])


@state
def refused_socket():
    server = socket.socket(socket.AF_UNIX)
    server.bind(path("refused_socket"))
    fd = os.open(path("refused_socket"), os.O_PATH | os.O_NOFOLLOW)
    os.unlink(path("refused_socket"))
    yield from held([fd, server.detach()])


@state
def refused_name():
    name = "refused_name" + "n" * 218
    fd = opened(name, b"long")
    os.unlink(path(name))
    open(path(name), "w").close()
    yield from held([fd])


@state
def refused_hole():
    fd = opened("refused_hole", b"")
    os.truncate(fd, 10 << 30)
    os.unlink(path("refused_hole"))
    yield from held([fd])


@state
def refused_size():
    fds = []
    for at in range(3):
        fd = opened(f"refused_size{at}", b"")
        os.truncate(fd, 50 << 20)
        os.unlink(path(f"refused_size{at}"))
        fds.append(fd)
    yield from held(fds)


def held(fds):
    try:
        while True:
            yield
            for fd in fds:
                os.fstat(fd)
    finally:
        for fd in fds:
            os.close(fd)


def report(holders):
    found = {}
    for name, holder in holders.items():
        try:
            next(holder)
            found[name] = "ok"
        except StopIteration:
            found[name] = "it had failed before"
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def serve():
    os.makedirs(BASE)
    holders = {}
    server = socket.socket(socket.AF_UNIX)
    server.bind(ASK)
    server.listen()
    print("ready", flush=True)
    while True:
        client, _ = server.accept()
        verb, *names = json.loads(client.makefile("r").readline())
        if verb == "make":
            made = {name: STATES[name]() for name in names}
            answer = report(made)
            holders.update(made)
        elif verb == "drop":
            for name in names:
                holders.pop(name).close()
            answer = {}
        else:
            answer = report(holders)
        client.sendall(json.dumps(answer).encode() + b"\n")
        client.close()


def ask(words):
    client = socket.socket(socket.AF_UNIX)
    client.connect(ASK)
    client.sendall(json.dumps(words).encode() + b"\n")
    print(client.makefile("r").readline())


if len(sys.argv) > 1:
    ask(sys.argv[1:])
else:
    serve()
