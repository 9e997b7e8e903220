// The edge, compared with nginx as a reverse proxy to the same server in the same sandbox, which nginx reaches by its address.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asError } from "@skerry/base";
import { freePorts, startPlatform } from "@skerry/testkit";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import type { Bench, Measured } from "../bench.ts";
import { type UnpackedPackages, unpackPackages } from "../debian-packages.ts";
import { cpuSeconds } from "../host-usage.ts";
import { createSandbox } from "../sdk.ts";
import { distribution } from "../statistics.ts";
import { download, upload } from "./bodies.ts";
import { SHARED_PATH, startNginxProxy } from "./nginx-proxy.ts";
import { measureRequests } from "./requests.ts";
import { SERVER_PORT, startServer } from "./sandbox-server.ts";
import { idleWebSockets } from "./web-sockets.ts";

const ROUNDS = 3;
const BODY_ROUNDS = 3;
const WEB_SOCKETS = 5_000;
const WEB_SOCKET_SANDBOXES = 4;
const SANDBOX_MS = 10_800_000;
const PACKAGES = ["nginx", "wrk", "libluajit-5.1-2"];

/** A way to the server: plain or TLS, through the edge or nginx. */
interface Contender {
  readonly name: string;
  readonly url: string;
  readonly host: string;
  /** The processes of the proxy. */
  pids(): number[];
}

const EDGE = "edge";
const NGINX = "nginx";
const KEPT = "nginx with kept connections to the server";

export const ingress: Bench = {
  name: "ingress",
  title: "Requests to a server in a sandbox on gVisor, through the edge and through nginx",
  async run({ transferMb }) {
    const dir = mkdtempSync(join(tmpdir(), "skerry-bench-ingress-"));
    try {
      using packages = await unpackPackages(PACKAGES);
      const { measured, notes } = await measure({ packages, dir, megabytes: transferMb });
      const rows = measured.map(([name, unit, samples]) => ({ name, unit, ...distribution(samples), samples }));
      return { rows, notes: [...ratios(measured), ...notes] };
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

interface Setup {
  readonly packages: UnpackedPackages;
  readonly dir: string;
  readonly megabytes: number;
}

async function measure({ packages, dir, megabytes }: Setup): Promise<{ measured: Measured[]; notes: string[] }> {
  const certificate = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem") };
  writeFileSync(certificate.cert, TEST_CERTIFICATE.cert);
  writeFileSync(certificate.key, TEST_CERTIFICATE.key);
  const [tlsPort = 0] = await freePorts(1);
  await using platform = await startPlatform({
    runtime: "gvisor",
    env: {
      SKERRY_TLS_CERT: certificate.cert,
      SKERRY_TLS_KEY: certificate.key,
      SKERRY_TLS_PORT: String(tlsPort),
      SKERRY_MAX_SANDBOX_CONNECTIONS: "9000",
      SKERRY_MAX_TEAM_CONNECTIONS: "9000",
      SKERRY_MAX_SANDBOX_REQUESTS_PER_SECOND: "0",
      SKERRY_MAX_TEAM_REQUESTS_PER_SECOND: "0",
    },
  });
  const servers: { host: string; server: string }[] = [];
  for (let at = 0; at < WEB_SOCKET_SANDBOXES; at++) {
    const sandbox = await createSandbox(platform);
    // On a busy machine, the run takes longer than the sandboxes of other benchmarks live.
    await sandbox.setTimeout(SANDBOX_MS);
    servers.push({ server: `${await startServer(sandbox)}:${SERVER_PORT}`, host: sandbox.getHost(SERVER_PORT) });
  }
  const [{ host, server } = { host: "", server: "" }] = servers;
  const sharing = servers.map((one) => one.server);
  const binary = join(packages.root, "usr/sbin/nginx");
  await using nginx = await startNginxProxy({ binary, dir, server, sharing, certificate });

  const ways = (scheme: "plain" | "tls"): Contender[] => {
    const protocol = scheme === "tls" ? "https" : "http";
    const at = (name: string, port: number, pids: () => number[]) => ({ name, url: `${protocol}://127.0.0.1:${port}/`, host, pids });
    const edgePort = scheme === "tls" ? tlsPort : platform.ports.edge;
    return [at(EDGE, edgePort, platform.pids), at(NGINX, nginx.fresh[scheme], nginx.pids), at(KEPT, nginx.kept[scheme], nginx.pids)];
  };
  const measured: Measured[] = [];
  for (const scheme of ["plain", "tls"] as const) {
    measured.push(...(await requestsOf(ways(scheme), { scheme, root: packages.root })));
  }
  for (const scheme of ["plain", "tls"] as const) {
    const contenders = ways(scheme).filter(({ name }) => name !== KEPT);
    measured.push(...(await bodiesOf(contenders, { scheme, dir, megabytes })));
  }
  const hosts = servers.map((one) => one.host);
  const proxies = [
    { name: EDGE, port: platform.ports.edge, pids: platform.pids },
    { name: NGINX, port: nginx.fresh.plain, pids: nginx.pids },
  ];
  const notes: string[] = [];
  for (const proxy of proxies) {
    const name = `${WEB_SOCKETS} idle WebSockets, memory of ${proxy.name}`;
    try {
      measured.push([name, "MiB", [await idleWebSockets({ ...proxy, hosts, path: SHARED_PATH }, WEB_SOCKETS)]]);
    } catch (error) {
      // The other figures took minutes, and are of use without this one.
      notes.push(`${name}: not measured, because ${asError(error).message}`);
    }
  }
  return { measured, notes };
}

/** The contenders take turns, so that other load on this machine affects all of them alike. */
async function requestsOf(contenders: readonly Contender[], { scheme, root }: { scheme: string; root: string }): Promise<Measured[]> {
  const loads = contenders.map((contender) => ({ ...contender, rates: [] as number[], p99s: [] as number[], costs: [] as number[] }));
  for (let round = -1; round < ROUNDS; round++) {
    for (const { url, host, pids, rates, p99s, costs } of loads) {
      const before = cpuSeconds(pids());
      const load = await measureRequests({ root, url, host });
      const used = cpuSeconds(pids()) - before;
      if (round < 0) continue;
      rates.push(load.perSecond);
      p99s.push(load.p99Ms);
      costs.push((used / load.requests) * 1e6);
    }
  }
  return loads.flatMap(({ name, rates, p99s, costs }) => [
    [`requests per second, ${scheme}, ${name}`, "/s", rates],
    [`p99, ${scheme}, ${name}`, "ms", p99s],
    [`CPU time of the proxy per request, ${scheme}, ${name}`, "µs", costs],
  ]);
}

async function bodiesOf(
  contenders: readonly Contender[],
  { scheme, dir, megabytes }: { scheme: string; dir: string; megabytes: number },
): Promise<Measured[]> {
  const times = contenders.map((contender) => ({ ...contender, down: [] as number[], up: [] as number[] }));
  for (let round = -1; round < BODY_ROUNDS; round++) {
    for (const { url, host, down, up } of times) {
      const downMs = await download({ url, host, megabytes });
      const upMs = await upload({ url, host, megabytes }, dir);
      if (round < 0) continue;
      down.push(downMs);
      up.push(upMs);
    }
  }
  return times.flatMap(({ name, down, up }) => [
    [`${megabytes} MB down, ${scheme}, ${name}`, "ms", down],
    [`${megabytes} MB up, ${scheme}, ${name}`, "ms", up],
  ]);
}

/** The medians of the edge, divided by those of the peers. */
function ratios(measured: readonly Measured[]): string[] {
  const medians = new Map(measured.map(([name, , samples]) => [name, distribution(samples).p50]));
  return measured.flatMap(([name]) => {
    const work = name.endsWith(`, ${EDGE}`) ? name.slice(0, -EDGE.length) : undefined;
    if (work === undefined) return [];
    return [NGINX, KEPT].flatMap((peer) => {
      const theirs = medians.get(work + peer);
      return theirs === undefined ? [] : [`${work}${EDGE}: ${(Number(medians.get(name)) / theirs).toFixed(2)} times that of ${peer}`];
    });
  });
}
