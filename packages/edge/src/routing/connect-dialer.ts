import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { asError, PlatformError, RelaySocket, type Secret } from "@skerry/base";
import type { DialErrorCode } from "../errors.ts";
import type { Dial, Route } from "../ports.ts";

/** Timeout for the node's response. A node retries a closed port for about a second before it responds. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Dials sandboxes through the RPC listener of their node, with `CONNECT {sandboxID}:{port}`. */
export function connectDialer(secret: Secret): Dial {
  return async (route, target, signal) => {
    const authority = `${target.sandboxId}:${target.port}`;
    const request = httpRequest({
      createConnection: () => openConnection(route),
      method: "CONNECT",
      path: authority,
      headers: ["Host", authority, "Proxy-Authorization", `Bearer ${secret.reveal()}`],
      setHost: false,
    });
    // The signal and the timer must not affect the stream after it was returned.
    const abort = () => request.destroy(new Error("the client disconnected"));
    signal.addEventListener("abort", abort, { once: true });
    const timer = setTimeout(() => request.destroy(new Error("the node did not answer in time")), ANSWER_TIMEOUT_MS);
    if (signal.aborted) abort();
    try {
      return await tunnelOf(request, route);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  };
}

function tunnelOf(request: ClientRequest, route: Route): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    request.once("connect", (response: IncomingMessage, stream: Duplex, head: Buffer) => {
      if (response.statusCode === 200) {
        if (head.length > 0) stream.unshift(head);
        resolve(stream);
        return;
      }
      stream.destroy();
      reject(failure(route, { status: response.statusCode ?? 0 }));
    });
    request.on("error", (error) => reject(failure(route, { cause: asError(error) })));
    // An unexpected response, such as an upgrade, closes the request without an error.
    request.once("close", () => reject(failure(route, { cause: new Error("the node closed the connection") })));
    request.end();
  });
}

function openConnection(route: Route): Duplex {
  const url = new URL(route.nodeUrl);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "http:") return new RelaySocket({ host, port: Number(url.port || 80) });
  return connectTls({ host, port: Number(url.port || 443), servername: host, ALPNProtocols: ["http/1.1"] }).setNoDelay(true);
}

const CODES: Readonly<Record<number, DialErrorCode>> = { 404: "sandbox_gone", 502: "port_closed" };

function failure(route: Route, why: { status: number } | { cause: Error }): PlatformError {
  if ("cause" in why) return new PlatformError("node_unreachable", `node ${route.nodeId} cannot be reached`, { cause: why.cause });
  return new PlatformError(CODES[why.status] ?? "node_unreachable", `node ${route.nodeId} answered CONNECT with status ${why.status}`);
}
