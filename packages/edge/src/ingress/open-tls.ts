import { constants } from "node:crypto";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import { AGENT_PORT, type Target } from "@skerry/wire";
import { carriedBy } from "../connections/reset.ts";
import type { Ingress } from "../ports.ts";

/** Timeout of a handshake with a server in a sandbox. */
const HANDSHAKE_MS = 10_000;

export function speaksTls(ingress: Ingress | undefined, { port }: Target): boolean {
  return port !== AGENT_PORT && (ingress?.tlsPorts.has(port) ?? false);
}

/**
 * Starts TLS on a stream to a server in a sandbox. Accepts every certificate: the tunnel already leads to this sandbox and nothing else.
 * The result owns the stream. If the handshake fails, the stream is closed.
 */
export function openTls(raw: Duplex, { host, signal }: { host: string | undefined; signal: AbortSignal }): Promise<Duplex> {
  const name = serverName(host);
  const tls = connect({
    socket: raw,
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(name === undefined ? {} : { servername: name }),
  });
  carriedBy(tls, raw);
  tls.on("error", () => {});
  raw.on("error", (error) => tls.destroy(error));
  tls.once("close", () => raw.destroy());
  return handshake(tls, signal);
}

function handshake(tls: TLSSocket, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => tls.destroy(new Error("the TLS handshake took too long")), HANDSHAKE_MS);
    const onAbort = () => tls.destroy(new Error("the client disconnected"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    const settle = (done: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      tls.off("error", fail).off("close", onClose).off("secureConnect", onSecure);
      done();
    };
    const fail = (error: Error) => settle(() => reject(error));
    const onClose = () => fail(new Error("the server closed the connection during the TLS handshake"));
    const onSecure = () => settle(() => resolve(tls));
    tls.once("error", fail).once("close", onClose).once("secureConnect", onSecure);
  });
}

/** The name that the client used, or the one that replaces it. Addresses are not sent as names (RFC 6066). */
function serverName(host: string | undefined): string | undefined {
  const name = (host ?? "").replace(/:\d*$/, "");
  return /^[a-z0-9._-]{1,253}$/i.test(name) && isIP(name) === 0 ? name : undefined;
}
