// Real parts around an edge: servers in place of programs in a sandbox, a dial over TCP, and the CONNECT listener of a node.

import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import type { Duplex } from "node:stream";
import { createLogger, type Logger, PlatformError, RelaySocket, Secret } from "@skerry/base";
import type { Target } from "@skerry/wire";
import {
  connectDialer,
  createEdge,
  type Dial,
  type Edge,
  type EdgeConfig,
  type FindLink,
  type FindSigner,
  type Route,
  type RouteTable,
} from "../src/index.ts";
import type { Control } from "./control.ts";

export const SANDBOX_ID = "iaaaaaaaaaaaaaaaaaaaa";
export const SECRET = new Secret("a cluster secret");

/** The existing sandboxes, and the loopback port behind each of their ports. */
export class Sandboxes {
  readonly ports = new Map<string, Map<number, number>>();
  readonly sockets = new Set<RelaySocket>();
  dials = 0;

  open(sandboxId: string, guestPort: number, hostPort: number): void {
    const ports = this.ports.get(sandboxId) ?? new Map<number, number>();
    this.ports.set(sandboxId, ports.set(guestPort, hostPort));
  }

  /** Forgets the sandbox and resets its connections, as a node does. */
  kill(sandboxId: string): void {
    this.ports.delete(sandboxId);
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  readonly dial = async (target: Target): Promise<RelaySocket> => {
    this.dials++;
    const ports = this.ports.get(target.sandboxId);
    if (!ports) throw new PlatformError("sandbox_gone", "no such sandbox");
    const port = ports.get(target.port);
    if (port === undefined) throw new PlatformError("port_closed", "nothing listens");
    const socket = new RelaySocket({ host: "127.0.0.1", port });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", (cause) => reject(new PlatformError("port_closed", "nothing listens", { cause })));
    });
    this.sockets.add(socket);
    socket.once("close", () => this.sockets.delete(socket));
    return socket;
  };
}

export interface World extends AsyncDisposable {
  readonly edge: Edge;
  readonly port: number;
  readonly sandboxes: Sandboxes;
  readonly routes: RouteTable & { forgotten: string[] };
  /** Starts an HTTP server on port `guestPort` of the sandbox. */
  serve(guestPort: number, listener: RequestListener): Promise<Server>;
  serveTcp(guestPort: number, onConnection: (socket: Socket) => void): Promise<TcpServer>;
}

/** How the edge dials sandboxes: directly, or through the CONNECT listener of a node. */
export type Reach = "direct" | "connect";

export interface WorldConfig extends Partial<EdgeConfig> {
  readonly logger?: Logger;
  /** By default, every sandbox with ports is running. */
  readonly control?: Control;
  /** By default, no sandbox made any signature. */
  readonly findSigner?: FindSigner;
  /** By default, there are no links. */
  readonly findLink?: FindLink;
  /** The limit group of a sandbox. By default, none has one. */
  readonly groups?: (sandboxId: string) => string;
}

export async function createWorld(reach: Reach, options: WorldConfig = {}): Promise<World> {
  const {
    control,
    findSigner = async () => undefined,
    findLink = async () => undefined,
    logger = createLogger({ name: "edge", level: "error" }),
    groups,
    ...config
  } = options;
  const stack = new AsyncDisposableStack();
  const sandboxes = new Sandboxes();
  sandboxes.ports.set(SANDBOX_ID, new Map());
  let nodeUrl = "http://127.0.0.1:1";
  let dial: Dial = (_route, target) => sandboxes.dial(target);
  if (reach === "connect") {
    const node = createNodeListener(sandboxes);
    nodeUrl = `http://127.0.0.1:${await listen(node, stack)}`;
    dial = connectDialer(SECRET);
  }
  const routes = control
    ? noting(await control.tableOver(reach, stack))
    : noting(tableOf(sandboxes, (id) => ({ nodeId: "node-1", nodeUrl, run: "1", ...(groups && { group: groups(id) }) })));
  control?.attach(sandboxes, nodeUrl);
  const edge = createEdge({ host: "127.0.0.1", port: 0, ...config }, { routes, findSigner, findLink, dial, logger });
  const { port } = await edge.listen();
  stack.defer(() => edge.close());
  return {
    edge,
    port,
    sandboxes,
    routes,
    async serve(guestPort, listener) {
      const server = createServer({ requestTimeout: 0 }, listener);
      sandboxes.open(SANDBOX_ID, guestPort, await listen(server, stack));
      return server;
    },
    async serveTcp(guestPort, onConnection) {
      const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
        socket.on("error", () => {});
        onConnection(socket);
      });
      sandboxes.open(SANDBOX_ID, guestPort, await listen(server, stack));
      return server;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function tableOf(sandboxes: Sandboxes, route: (sandboxId: string) => Route): RouteTable {
  return {
    find: async (sandboxId) =>
      sandboxes.ports.has(sandboxId) ? { kind: "running", route: route(sandboxId) } : { kind: "absent", absence: { state: "unknown" } },
    forget: () => {},
  };
}

function noting(table: RouteTable): RouteTable & { forgotten: string[] } {
  const forgotten: string[] = [];
  return {
    forgotten,
    find: (...asked) => table.find(...asked),
    forget(sandboxId) {
      forgotten.push(sandboxId);
      table.forget(sandboxId);
    },
  };
}

function createNodeListener(sandboxes: Sandboxes): Server {
  const server = createServer();
  server.on("connect", async (req: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on("error", () => {});
    const refuse = (status: number) => client.end(`HTTP/1.1 ${status} refused\r\nConnection: close\r\n\r\n`);
    if (req.headers["proxy-authorization"] !== `Bearer ${SECRET.reveal()}`) return refuse(401);
    const [sandboxId, port] = (req.url ?? "").split(":");
    try {
      const stream = await sandboxes.dial({ sandboxId: sandboxId as Target["sandboxId"], port: Number(port) });
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      if (head.length > 0) stream.write(head);
      client.pipe(stream).pipe(client);
      stream.on("error", () => (client as Socket).resetAndDestroy());
      client.on("close", () => stream.resetAndDestroy());
      stream.on("close", () => {
        if (!stream.readableEnded) (client as Socket).resetAndDestroy();
      });
    } catch (error) {
      refuse(error instanceof PlatformError && error.code === "sandbox_gone" ? 404 : 502);
    }
  });
  return server;
}

export async function listen(server: Server | TcpServer, stack: AsyncDisposableStack): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  );
  return (server.address() as AddressInfo).port;
}
