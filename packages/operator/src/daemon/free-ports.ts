import { once } from "node:events";
import { createServer } from "node:net";
import { errnoOf } from "@skerry/base";
import type { PlatformSettings } from "@skerry/setup/folder";
import { OperatorError } from "@skerry/setup/folder";

interface Listener {
  readonly what: string;
  readonly option: string;
  readonly port: (settings: PlatformSettings) => number;
}

/** What the platform listens with on this machine. The ports of split roles are settings of `serve`, which names them itself. */
const LISTENERS: readonly Listener[] = [
  { what: "the API", option: "--api-port", port: ({ apiPort }) => apiPort },
  { what: "the edge", option: "--edge-port", port: ({ edgePort }) => edgePort },
];

/**
 * Throws when the platform could not listen where it is told to, with the option that changes that. Ports that `mine` says are our
 * own running platform's are not looked at.
 */
export async function assertPortsFree(settings: PlatformSettings, mine: (port: number) => boolean = () => false): Promise<void> {
  for (const listener of LISTENERS) {
    const port = listener.port(settings);
    if (mine(port)) continue;
    const errno = await tryListening(settings.listen, port);
    if (errno !== undefined) throw refused(errno, listener, { address: settings.listen, port });
  }
}

/** As the platform will do it. The name of the system's error, when it can't. */
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
    return new OperatorError(`${what} can't listen on ${address}: this machine has no such address`, {
      mend: ["Choose one that it has: --listen 127.0.0.1, or 0.0.0.0 for all of them"],
    });
  }
  if (errno !== "EADDRINUSE") return new OperatorError(`${what} can't listen on ${address}, port ${port}: ${errno}`);
  return new OperatorError(`${what} can't listen on ${address}, port ${port}: something else does already`, {
    mend: [
      `Another platform, or another server? Choose another port: ${option} ${port < 65_000 ? port + 100 : port - 100}`,
      `What has it: ss -ltnp 'sport = :${port}'`,
    ],
  });
}
