"""The servers of a company's network, for a test: a proxy that asks for a password and intercepts TLS, and nothing else beside it.

Usage: company-network.py PROXY_PORT OTHER_PORT CERTIFICATE KEY

Every connection that the proxy is asked for ends at its own server, whose certificate the company's authority issued. This server has a
package for each package manager. The other port answers as well: a client that reaches it has passed the firewall.
"""

import base64, hashlib, io, json, socket, ssl, sys, tarfile, threading, zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROXY_PORT, OTHER_PORT, CERTIFICATE, KEY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
EXPECTED = "Basic " + base64.b64encode(b"company:pass-word").decode()


def wheel():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("six.py", "")
        archive.writestr("six-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: six\nVersion: 1.0\n")
        archive.writestr("six-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("six-1.0.dist-info/RECORD", "")
    return data.getvalue()


WHEEL = wheel()
PACKAGES = b"Package: of-the-company\nVersion: 1.0\nArchitecture: all\nFilename: ./none.deb\nSize: 1\nSHA256: " + b"0" * 64 + b"\n"
RELEASE = f"Suite: test\nSHA256:\n {hashlib.sha256(PACKAGES).hexdigest()} {len(PACKAGES)} Packages\n".encode()
MANIFEST = {
    "name": "is-number",
    "dist-tags": {"latest": "7.0.0"},
    "versions": {"7.0.0": {"name": "is-number", "version": "7.0.0", "dist": {"tarball": "https://packages.example/x.tgz", "shasum": "0" * 40}}},
}
PAGES = {
    "/": b"through the proxy",
    "/simple/six/": b'<a href="/six-1.0-py3-none-any.whl">six-1.0-py3-none-any.whl</a>',
    "/six-1.0-py3-none-any.whl": WHEEL,
    "/is-number": json.dumps(MANIFEST).encode(),
    "/debian/./Release": RELEASE,
    "/debian/Release": RELEASE,
    "/debian/./Packages": PACKAGES,
    "/debian/Packages": PACKAGES,
    "/repo.git/info/refs": b"0123456789abcdef0123456789abcdef01234567\trefs/heads/main\n",
}


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = PAGES.get(self.path.split("?")[0])
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/octet-stream")
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, *_):
        pass


class Proxy(Origin):
    def allowed(self):
        if self.headers.get("Proxy-Authorization") == EXPECTED:
            return True
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="company"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def do_GET(self):
        if not self.allowed():
            return
        self.path = "/" + self.path.split("/", 3)[3] if self.path.startswith("http") else self.path
        super().do_GET()

    def do_CONNECT(self):
        if not self.allowed():
            return
        self.send_response(200)
        self.end_headers()
        upstream = socket.create_connection(("127.0.0.1", origin.server_port))
        threading.Thread(target=pump, args=(upstream, self.connection), daemon=True).start()
        pump(self.connection, upstream)
        self.close_connection = True


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        try:
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)


class Tls(ThreadingHTTPServer):
    # The handshake in the thread of the connection: a client that refuses the certificate disturbs nobody.
    def finish_request(self, request, client_address):
        try:
            with context.wrap_socket(request, server_side=True) as secured:
                self.RequestHandlerClass(secured, client_address, self)
        except OSError:
            pass


origin = Tls(("127.0.0.1", 0), Origin)
for server in (origin, ThreadingHTTPServer(("0.0.0.0", OTHER_PORT), Origin)):
    threading.Thread(target=server.serve_forever, daemon=True).start()
ThreadingHTTPServer(("0.0.0.0", PROXY_PORT), Proxy).serve_forever()
