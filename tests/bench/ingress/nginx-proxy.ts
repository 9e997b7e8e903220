// The peer: nginx from Debian's package on this host, as a reverse proxy to the same server.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnCommand } from "@skerry/base";
import { freePorts } from "@skerry/testkit";

/** Requests to this path go to several sandboxes in turn. */
export const SHARED_PATH = "/shared";

export interface NginxProxy extends AsyncDisposable {
  /** With a connection to the server for each request, as nginx does by default. */
  readonly fresh: NginxPorts;
  /** With connections to the server that are kept for later requests of anybody. */
  readonly kept: NginxPorts;
  /** Master and workers. */
  pids(): number[];
}

/** Two for each WebSocket. */
const MAX_FILES = 16_000;

export interface NginxPorts {
  readonly plain: number;
  readonly tls: number;
}

export interface NginxOptions {
  readonly binary: string;
  /** An empty folder. */
  readonly dir: string;
  /** `address:port` of the server. */
  readonly server: string;
  /** Of all servers that share the requests to `SHARED_PATH`. */
  readonly sharing: readonly string[];
  readonly certificate: { readonly cert: string; readonly key: string };
}

export async function startNginxProxy(options: NginxOptions): Promise<NginxProxy> {
  const { binary, dir } = options;
  const [plain = 0, tls = 0, keptPlain = 0, keptTls = 0] = await freePorts(4);
  const fresh = { plain, tls };
  const kept = { plain: keptPlain, tls: keptTls };
  mkdirSync(join(dir, "temp"), { recursive: true });
  const config = join(dir, "nginx.conf");
  writeFileSync(config, configuration(options, { fresh, kept }));
  const child = spawnCommand(binary, ["-e", join(dir, "error.log"), "-c", config]);
  child.stdout?.resume();
  child.stderr?.resume();
  try {
    await untilItAnswers(child, { dir, port: plain });
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  return {
    fresh,
    kept,
    pids: () => [child.pid ?? 0, ...childrenOf(child.pid ?? 0)],
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function untilItAnswers(child: ChildProcess, { dir, port }: { dir: string; port: number }): Promise<void> {
  for (let tried = 0; tried < 300; tried++) {
    if (child.exitCode !== null) throw new Error(`nginx did not start: ${readFileSync(join(dir, "error.log"), "utf8")}`);
    if (
      await fetch(`http://127.0.0.1:${port}/`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return;
    await sleep(100);
  }
  throw new Error("nginx does not answer");
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

/**
 * The defaults, except for these: no access log, since the edge has none either. Bodies are not written to files, which is faster for
 * nginx. WebSockets pass, and there may be many. Workers are root, because the firewall lets nobody else reach a sandbox.
 */
function configuration(options: NginxOptions, { fresh, kept }: { fresh: NginxPorts; kept: NginxPorts }): string {
  const { dir, server, sharing, certificate } = options;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `  ${name}_temp_path ${dir}/temp/${name};`);
  const listener = ({ plain, tls }: NginxPorts, target: string) => `
  server {
    listen 127.0.0.1:${plain} backlog=4096;
    listen 127.0.0.1:${tls} ssl http2 backlog=4096;
    location / { proxy_pass http://${target}; }
    location ${SHARED_PATH} { proxy_pass http://shared; }
  }`;
  return `user root;
daemon off;
worker_processes auto;
worker_rlimit_nofile ${MAX_FILES};
pid ${dir}/nginx.pid;
events { worker_connections ${MAX_FILES}; }
http {
  access_log off;
  client_max_body_size 0;
  proxy_request_buffering off;
  proxy_max_temp_file_size 0;
  proxy_read_timeout 1h;
  proxy_http_version 1.1;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection $connection_upgrade;
  keepalive_requests 100000000;
  ssl_certificate ${certificate.cert};
  ssl_certificate_key ${certificate.key};
${temporary.join("\n")}
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  upstream fresh { server ${server}; }
  upstream kept { server ${server}; keepalive 64; }
  upstream shared { ${sharing.map((one) => `server ${one};`).join(" ")} }
${listener(fresh, "fresh")}
${listener(kept, "kept")}
}
`;
}
