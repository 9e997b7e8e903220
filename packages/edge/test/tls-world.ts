// An edge with a TLS listener, certificates for it, and clients that trust them.

import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { createLogger, runCommand } from "@skerry/base";
import { type ApiRoute, CertificateFiles, type TlsConfig } from "../src/index.ts";
import { type Answer, hostOf, readAnswer, responseTo, waitFor } from "./client.ts";
import { createWorld, type World, type WorldConfig } from "./parts.ts";

export interface TlsWorld extends AsyncDisposable {
  readonly world: World;
  readonly port: number;
  readonly certificate: CertificateFiles;
  log(): string;
  /** Makes a certificate and its key, which are not in use yet. Clients of `connect` trust it. */
  make(name: string): Promise<void>;
  /** Puts a certificate and a key in place. They belong together unless they have different names. */
  install(certificate: string, key?: string): void;
  /** Puts a certificate in place that is none. */
  installRubbish(): void;
  connect(options?: ConnectionOptions): Promise<TlsClient>;
  /** What a client needs in order to reach and trust the listener. */
  trusting(): ConnectionOptions;
  fetch(guestPort: number, options?: RequestOptions & { body?: Buffer }): Promise<Answer>;
}

export type TlsWorldConfig = WorldConfig & { readonly limits?: Partial<TlsConfig>; readonly api?: ApiRoute; readonly lookMs?: number };

export async function createTlsWorld(options: TlsWorldConfig = {}): Promise<TlsWorld> {
  const { limits, lookMs = 3_600_000, ...config } = options;
  const stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "edge-tls-"));
  stack.defer(() => rmSync(dir, { recursive: true }));
  const at = (name: string) => join(dir, `${name}.pem`);
  const fd = openSync(join(dir, "log"), "a");
  stack.defer(() => closeSync(fd));
  const logger = createLogger({ name: "edge", level: "info", fd });
  const make = async (name: string) => {
    const names = "subjectAltName=DNS:*.skerry.test,DNS:skerry.test";
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at(`${name}-key`)];
    await runCommand("openssl", ["req", "-x509", ...key, "-out", at(name), "-days", "30", "-subj", `/CN=${name}`, "-addext", names]);
  };
  const install = (name: string, key = name) => {
    copyFileSync(at(`${key}-key`), at("current-key"));
    copyFileSync(at(name), at("current"));
  };
  await make("first");
  install("first");
  const certificate = stack.use(await CertificateFiles.open({ certFile: at("current"), keyFile: at("current-key"), lookMs }, logger));
  const world = stack.use(await createWorld("direct", { logger, ...config, tls: { port: 0, certificate, ...limits } }));
  const { port } = await world.edge.listenTls();
  const trust = (): ConnectionOptions => ({
    servername: "x.skerry.test",
    ca: ["first", "second"].flatMap((name) => readIfThere(at(name))),
  });
  return {
    world,
    port,
    certificate,
    log: () => readFileSync(join(dir, "log"), "utf8"),
    make,
    install,
    installRubbish: () => copyFileSync(at("first-key"), at("current")),
    trusting: () => ({ host: "127.0.0.1", port, ...trust() }),
    connect: (more) => TlsClient.open({ host: "127.0.0.1", port, ...trust(), ...more }),
    async fetch(guestPort, { body, headers, ...rest } = {}) {
      const request = httpsRequest({
        host: "127.0.0.1",
        port,
        agent: false,
        setHost: false,
        headers: { host: hostOf(guestPort), ...(headers as Record<string, string>) },
        ...trust(),
        ...rest,
      });
      request.end(body);
      return readAnswer(await responseTo(request));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function readIfThere(path: string): Buffer[] {
  try {
    return [readFileSync(path)];
  } catch {
    return [];
  }
}

/** A TLS connection, for bytes that no HTTP client sends. */
export class TlsClient {
  readonly socket: TLSSocket;
  received = "";
  ended = false;
  error: NodeJS.ErrnoException | undefined;

  private constructor(options: ConnectionOptions) {
    this.socket = connect({ allowHalfOpen: true, ALPNProtocols: ["http/1.1"], ...options } as ConnectionOptions);
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
    });
    this.socket.on("end", () => {
      this.ended = true;
    });
    this.socket.on("error", (error) => {
      this.error = error;
    });
  }

  static async open(options: ConnectionOptions): Promise<TlsClient> {
    const client = new TlsClient(options);
    await new Promise((resolve, reject) => {
      client.socket.once("secureConnect", resolve);
      client.socket.once("error", reject);
    });
    return client;
  }

  get serverName(): string {
    return String(this.socket.getPeerCertificate().subject.CN);
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  async until(text: string): Promise<string> {
    return waitFor(() => (this.received.includes(text) ? this.received : undefined), `"${text}" in ${this.received}`, 20_000);
  }

  async untilClosed(): Promise<void> {
    await waitFor(() => (this.socket.destroyed ? true : undefined), `the end after ${this.received}`, 20_000);
  }
}
