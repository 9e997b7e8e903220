# Runs in a sandbox: connects in every way that an attacker may try, and prints what happened as JSON.
import json, socket, ssl, struct, sys, time

TIMEOUT = 20


def context():
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def address_of(name):
    return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]


def read_all(stream):
    parts = []
    while True:
        part = stream.recv(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def told(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/") else 0
    try:
        return {"status": status, **json.loads(body)}
    except ValueError:
        return {"status": status, "text": body.decode("latin1")[:200]}


def head(host, path="/"):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def http(name, host=None, address=None, port=80, raw=None):
    with socket.create_connection((address or address_of(name), port), TIMEOUT) as plain:
        plain.sendall(raw.encode("latin1") if raw else head(host or name))
        return told(read_all(plain))


def https(name, sni="", host=None, address=None, port=443):
    sni = (sni or name) if sni is not None else None
    with socket.create_connection((address or address_of(name), port), TIMEOUT) as plain:
        with context().wrap_socket(plain, server_hostname=sni) as secure:
            secure.sendall(head(host or name))
            return told(read_all(secure))


def split(name, address=None, size=1, records=False, wait=0.0):
    """Sends the first message in small pieces: of the connection, or of the protocol itself."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = context().wrap_bio(incoming, outgoing, server_hostname=name)
    with socket.create_connection((address or address_of(name), 443), TIMEOUT) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def step(action):
            while True:
                try:
                    return action()
                except ssl.SSLWantReadError:
                    flush()
                    data = plain.recv(65536)
                    if not data:
                        raise ConnectionError("closed")
                    incoming.write(data)

        first = [True]

        def flush():
            data = outgoing.read()
            if first[0] and data:
                first[0] = False
                if records:
                    body = data[5:]
                    data = b"".join(data[:3] + struct.pack(">H", len(body[at : at + size])) + body[at : at + size] for at in range(0, len(body), size))
                    plain.sendall(data)
                    return
                for at in range(0, len(data), size):
                    plain.sendall(data[at : at + size])
                    if wait:
                        time.sleep(wait)
                return
            if data:
                plain.sendall(data)

        step(secure.do_handshake)
        secure.write(head(name))
        flush()
        parts = []
        while True:
            try:
                part = step(lambda: secure.read(65536))
            except (ssl.SSLError, ConnectionError):
                break
            if not part:
                break
            parts.append(part)
        return told(b"".join(parts))


def requests(name, hosts):
    """One connection, several requests, each for another host."""
    answers = []
    with socket.create_connection((address_of(name), 80), TIMEOUT) as plain:
        for host in hosts:
            plain.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            data = b""
            while b"\r\n\r\n" not in data or not complete(data):
                part = plain.recv(65536)
                if not part:
                    break
                data += part
            answers.append(told(data))
            if b"connection: close" in data.lower():
                break
    return answers


def complete(data):
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def dns(name, server, kind=1, tcp=False, timeout=TIMEOUT):
    message = question(name, kind)
    if tcp:
        with socket.create_connection((server, 53), timeout) as plain:
            plain.sendall(struct.pack(">H", len(message)) + message)
            answer = plain.recv(4096)[2:]
    else:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.settimeout(timeout)
            plain.sendto(message, (server, 53))
            answer = plain.recv(4096)
    if not answer:
        return {"rcode": None}
    return {"rcode": answer[3] & 15, "answers": struct.unpack(">H", answer[6:8])[0], "last": list(answer[-4:])}


def connect(address, port, send=None, timeout=5):
    """Whether a server at this address says anything."""
    with socket.create_connection((address, port), timeout) as plain:
        plain.sendall((send or "GET / HTTP/1.0\r\n\r\n").encode("latin1"))
        return {"got": len(plain.recv(100))}


def udp(address, port, send="hello", timeout=3):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.settimeout(timeout)
        plain.sendto(send.encode("latin1"), (address, port))
        return {"got": len(plain.recv(2048))}


def attempt(step):
    try:
        return globals()[step.pop("do")](**step)
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)[:200]}


print(json.dumps([attempt(step) for step in json.load(sys.stdin if len(sys.argv) < 2 else open(sys.argv[1]))]))
