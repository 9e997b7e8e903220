import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { applyFirewall, networkNames, type Restriction, removeFirewall, restrictTraffic } from "@skerry/runtime";
import { startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { callApi, clientOf } from "../e2e/client.ts";
import { startNamedInternet } from "../security/named-internet.ts";
import { INTERNET_PORT, type TestInternet } from "../security/test-internet.ts";
import type { Bench, Row } from "./bench.ts";
import { distribution, repeated, samplesOf } from "./statistics.ts";

const NAME = "good.example";
const REQUESTS = 200;
const TRANSFERRED_MB = 200;
const TRANSFERS = 3;
/** Sandboxes with rules on one host. */
const SIZES = [10, 10_000];
const UPDATES = 20;
const PACKETS = 2_000;

/** What rules for names cost a sandbox, and what rules of many sandboxes cost each. */
export const egress: Bench = {
  name: "egress",
  title: "Outgoing traffic under rules for names, and beside the rules of many sandboxes",
  async run() {
    await using internet = await startNamedInternet(({ publicAddress }) => ({ [NAME]: { addresses: [[publicAddress]] } }));
    const rows: Row[] = [];
    for (const runtime of ["gvisor", "runc"] as const) rows.push(...(await underRules(runtime, internet)));
    for (const count of SIZES) rows.push(...(await amongRules(count, internet)));
    return {
      rows,
      notes: ["Both name servers and both web servers are on the same machine.", "A transfer that loses a byte fails the benchmark."],
    };
  },
};

async function underRules(runtime: "gvisor" | "runc", internet: TestInternet & { readonly resolver: string }): Promise<Row[]> {
  await using platform = await startPlatform({ runtime, env: { SKERRY_DNS: internet.resolver } });
  const policies = {
    "no rules": {},
    "a rule for the name": { allowOut: [NAME], denyOut: ["0.0.0.0/0"] },
    "no rules, 200 Mbit/s": { limits: { bandwidthMbps: 200 } },
    "a rule for the name, 200 Mbit/s": { allowOut: [NAME], denyOut: ["0.0.0.0/0"], limits: { bandwidthMbps: 200 } },
  };
  const rows: Row[] = [];
  for (const [policy, network] of Object.entries(policies)) {
    const answer = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3_600, network } });
    const sandbox = await Sandbox.connect((answer.body as { sandboxID: string }).sandboxID, clientOf(platform));
    await sandbox.files.write("/tmp/client.py", CLIENT);
    const run = async (...args: (string | number)[]) =>
      samplesOf((await sandbox.commands.run(`python3 /tmp/client.py ${args.join(" ")}`, { timeoutMs: 0 })).stdout);
    const add = (what: string, unit: string, samples: readonly number[]) =>
      rows.push({ name: `${runtime}, ${policy}: ${what}`, unit, ...distribution(samples), samples });
    await run("http", 20);
    add("HTTP request with look-up, ms", "ms", await run("http", REQUESTS));
    add("HTTPS request with look-up, ms", "ms", await run("https", REQUESTS));
    add("one transfer, Mbit/s", "Mbit/s", await run("transfer", TRANSFERS, TRANSFERRED_MB * 1_000_000));
    await sandbox.kill();
  }
  return rows;
}

/** A table of its own: it has rules for interfaces that do not exist, and for one of a namespace that stands for a sandbox. */
async function amongRules(count: number, internet: TestInternet): Promise<Row[]> {
  const names = networkNames(randomBytes(2).toString("hex"));
  const restriction = (slot: number, closed: string): Restriction => ({
    hostInterface: names.hostInterface(slot),
    closed: [closed],
    proxiesAt: [],
  });
  const restricted = Array.from({ length: count }, (_, slot) => restriction(slot, "203.0.113.200"));
  const rules = {
    names,
    pool: "10.254.253.0/24",
    ipv6: undefined,
    resolvers: [],
    proxies: [],
    adopted: [],
    maxConnections: 8192,
    egress: { proxy: 61_998, dns: 61_999 },
  };
  const [namespace, hostInterface] = [names.namespace(0), names.hostInterface(0)];
  const ip = (...args: string[]) => execFileSync("ip", args);
  await applyFirewall({ ...rules, restricted });
  try {
    ip("netns", "add", namespace);
    ip("link", "add", hostInterface, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    ip("addr", "add", "10.254.253.0/31", "dev", hostInterface);
    ip("link", "set", hostInterface, "up");
    ip("-n", namespace, "addr", "add", "10.254.253.1/31", "dev", "eth0");
    ip("-n", namespace, "link", "set", "eth0", "up");
    ip("-n", namespace, "route", "add", "default", "via", "10.254.253.0");
    const pings = () =>
      execFileSync("nsenter", [`--net=/run/netns/${namespace}`, "python3", "-c", PING, internet.publicAddress], { encoding: "utf8" });
    const packets = samplesOf(pings());
    let last = 0;
    const updates = await repeated(UPDATES, () => restrictTraffic(names, restriction(0, `203.0.113.${++last}`)));
    const row = (what: string, unit: string, samples: readonly number[]) => ({
      name: `rules of ${count} sandboxes: ${what}`,
      unit,
      ...distribution(samples),
      samples,
    });
    return [row("one update, ms", "ms", updates), row("a packet and its answer, µs", "µs", packets)];
  } finally {
    ip("netns", "del", namespace);
    await removeFirewall(names);
  }
}

const CLIENT = `
import http.client, ssl, sys, time
what, count = sys.argv[1], int(sys.argv[2])
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def get(path):
    made = http.client.HTTPSConnection("${NAME}", context=context) if what == "https" else http.client.HTTPConnection("${NAME}")
    made.request("GET", path)
    answer = made.getresponse()
    got = 0
    while data := answer.read(262144): got += len(data)
    made.close()
    return got
for _ in range(count):
    start = time.monotonic()
    size = int(sys.argv[3]) if what == "transfer" else 0
    got = get(f"/?size={size}" if size else "/")
    seconds = time.monotonic() - start
    if size: assert got == size
    print(size * 8 / 1e6 / seconds if size else seconds * 1000)
`;

const PING = `
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10); s.connect((sys.argv[1], ${INTERNET_PORT}))
for _ in range(100): s.send(b"x"); s.recv(10)
for _ in range(${PACKETS}):
    start = time.monotonic(); s.send(b"x"); s.recv(10); print((time.monotonic() - start) * 1e6)
`;
