import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { waitUntil } from "@skerry/testkit/wait-until";

/** Of the proxy that works, of the same with TLS, of hostile ones, and of a server behind it that speaks first. */
export const SOCKS_PORTS = { socks: 1080, tls: 1081, garbage: 1082, reset: 1083, silent: 1084, huge: 1085, greeting: 1086 } as const;

export interface SocksProxyAbout {
  readonly address: string;
  /** The names that it knows, and nobody else does. */
  readonly names: Readonly<Record<string, string>>;
  readonly username: string;
  readonly password: string;
  readonly ports: Record<keyof typeof SOCKS_PORTS, number>;
  readonly certificate: { readonly cert: string; readonly key: string };
}

export interface SocksProxy extends AsyncDisposable {
  /** What it was asked since the last call. */
  asked(): Record<string, unknown>[];
  /** Ends it, so that nobody answers any more. */
  stop(): void;
}

/** Starts the proxies in the namespace of a simulated internet. */
export async function startSocksProxy(namespace: string, about: Omit<SocksProxyAbout, "ports" | "certificate">): Promise<SocksProxy> {
  const program = join(import.meta.dirname, "socks-proxy-server.ts");
  const server = spawn("ip", ["netns", "exec", namespace, process.execPath, program], { stdio: ["pipe", "pipe", "inherit"] });
  const stop = () => void server.kill("SIGKILL");
  const events: Record<string, unknown>[] = [];
  createInterface({ input: server.stdout }).on("line", (line) => events.push(JSON.parse(line)));
  server.stdin.end(JSON.stringify({ ...about, ports: SOCKS_PORTS, certificate: TEST_CERTIFICATE }));
  await waitUntil("the proxy listens", () => events.length > 0);
  events.length = 0;
  return { asked: () => events.splice(0), stop, [Symbol.asyncDispose]: async () => stop() };
}
