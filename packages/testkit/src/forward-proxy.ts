import { randomBytes } from "node:crypto";
import { createServer, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";

export interface ForwardProxy extends AsyncDisposable {
  /** With the credentials that it asks for. */
  readonly url: string;
  /** Where clients with the credentials had it connect to, as `host:port`. */
  readonly connected: readonly string[];
}

/** A proxy on this host, for sandboxes that need packages from the registries which only the host can reach. */
export async function startForwardProxy(): Promise<ForwardProxy> {
  const address = ownAddress();
  const password = randomBytes(16).toString("hex");
  const expected = `Basic ${Buffer.from(`test:${password}`).toString("base64")}`;
  const open = new Set<Socket>();
  const connected: string[] = [];
  const server = createServer((incoming, outgoing) => {
    if (incoming.headers["proxy-authorization"] !== expected) return void outgoing.writeHead(407).end();
    const { "proxy-authorization": _secret, ...headers } = incoming.headers;
    const upstream = request(incoming.url ?? "", { method: incoming.method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    upstream.on("error", () => outgoing.destroy());
    incoming.pipe(upstream);
  });
  server.on("connect", (incoming, client: Socket, head: Buffer) => {
    client.on("error", () => client.destroy());
    if (incoming.headers["proxy-authorization"] !== expected) {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n");
      return;
    }
    connected.push(incoming.url ?? "");
    const { hostname, port } = new URL(`http://${incoming.url}`);
    const upstream = connect(Number(port || 80), hostname, () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  return {
    connected,
    url: `http://test:${password}@${address}:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const found = all.find(({ family, internal }) => family === "IPv4" && !internal);
  if (!found) throw new Error("this host has no IPv4 address beside loopback, at which sandboxes could reach a proxy");
  return found.address;
}
