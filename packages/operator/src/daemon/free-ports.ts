import { once } from "node:events";
import { createServer } from "node:net";
import { errnoOf } from "@skerry/base";
import type { PlatformSettings } from "@skerry/setup/folder";
import { OperatorError } from "@skerry/setup/folder";

interface Listener {
  readonly what: string;
  readonly option: string;
  /** Undefined: it does not listen. */
  readonly port: (settings: PlatformSettings) => number | undefined;
}

/** Listeners of a platform in one process. The ports of split roles are settings of `serve`, whose errors name them. */
const LISTENERS: readonly Listener[] = [
  { what: "the API", option: "--api-port", port: ({ apiPort }) => apiPort },
  { what: "the edge", option: "--edge-port", port: ({ edgePort }) => edgePort },
  { what: "the edge", option: "--tls-port", port: ({ tls }) => tls?.port },
];

/**
 * Throws if the platform cannot listen on one of its addresses, and names the option that changes the address. Ports for which `mine`
 * returns true belong to the running platform and are not checked.
 */
export async function assertPortsFree(settings: PlatformSettings, mine: (port: number) => boolean = () => false): Promise<void> {
  for (const listener of LISTENERS) {
    const port = listener.port(settings);
    if (port === undefined || mine(port)) continue;
    const errno = await tryListening(settings.listen, port);
    if (errno !== undefined) throw refused(errno, listener, { address: settings.listen, port });
  }
}

/** Listens as the platform will. Returns the name of the system error, or undefined if it worked. */
async function tryListening(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, "listening");
    server.close();
    await once(server, "close");
    return undefined;
  } catch (error) {
    return errnoOf(error) ?? String(error);
  }
}

function refused(errno: string, { what, option }: Listener, { address, port }: { address: string; port: number }): OperatorError {
  if (errno === "EADDRNOTAVAIL") {
    return new OperatorError(`${what} can't listen on ${address}: this host has no such address`, {
      hints: ["Choose an address of this host, such as --listen 127.0.0.1, or 0.0.0.0 for all of its addresses."],
    });
  }
  if (errno !== "EADDRINUSE") return new OperatorError(`${what} can't listen on ${address}, port ${port}: ${errno}`);
  return new OperatorError(`${what} can't listen on ${address}, port ${port}: the port is in use`, {
    hints: [
      `Choose another port, such as ${option} ${port < 65_000 ? port + 100 : port - 100}.`,
      `To find the program that uses it, run ss -ltnp 'sport = :${port}'.`,
    ],
  });
}
