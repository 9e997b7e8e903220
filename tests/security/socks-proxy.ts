import { join } from "node:path";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { startTellingProgram } from "./telling-program.ts";

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
  asked(): Promise<Record<string, unknown>[]>;
}

/** Starts the proxies in the namespace of a simulated internet. */
export async function startSocksProxy(namespace: string, about: Omit<SocksProxyAbout, "ports" | "certificate">): Promise<SocksProxy> {
  const program = join(import.meta.dirname, "socks-proxy-server.ts");
  const input: SocksProxyAbout = { ...about, ports: SOCKS_PORTS, certificate: TEST_CERTIFICATE };
  const { told, stop } = await startTellingProgram<Record<string, unknown>>(namespace, program, input);
  return { asked: told, [Symbol.asyncDispose]: async () => stop() };
}
