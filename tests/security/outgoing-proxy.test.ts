// The proxy that a caller chooses for a sandbox, attacked from inside and by the proxy itself: docs/network.md.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { type NamedInternet, startNamedInternet } from "./named-internet.ts";
import { SOCKS_PORTS, type SocksProxy, startSocksProxy } from "./socks-proxy.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT } from "./test-internet.ts";

const EVERYTHING = "0.0.0.0/0";
const [USERNAME, PASSWORD] = ["proxy-user", "pr0xy-passw0rd-that-no-sandbox-has"];
/** Known to the proxy alone. */
const HIDDEN = "hidden.proxy.example";
const OTHER = "other.proxy.example";
/** Known to everybody. */
const KNOWN = "known.example";
const PROGRAM = readFileSync(join(import.meta.dirname, "egress-client.py"), "utf8");

type Step = { readonly do: string } & Record<string, unknown>;

describe.each(runtimesFor("the proxy of a sandbox"))("the proxy of a sandbox on %s", (runtime) => {
  let internet: NamedInternet;
  let proxy: SocksProxy;
  let platform: Platform;
  /** The server of `HIDDEN` and `KNOWN`, and the proxy. */
  let one: string;
  let two: string;

  beforeAll(async () => {
    internet = await startNamedInternet(({ publicAddress, otherPublicAddress }) => ({
      [KNOWN]: { addresses: [[publicAddress]] },
      "proxy.example": { addresses: [[otherPublicAddress]] },
      "closed.proxy.example": { addresses: [[CLOSED_ADDRESSES[0] ?? ""]] },
    }));
    [one, two] = [internet.publicAddress, internet.otherPublicAddress];
    const names = { [HIDDEN]: one, [OTHER]: one, [KNOWN]: one };
    proxy = await startSocksProxy(internet.namespace, { address: two, names, username: USERNAME, password: PASSWORD });
    platform = await startPlatform({ runtime, env: { SKERRY_DNS: internet.resolver } });
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
    await internet?.[Symbol.asyncDispose]();
  });

  const connect = (id: string) => Sandbox.connect(id, { ...clientOf(platform), timeoutMs: 600_000 });
  const chosen = (more: object = {}) => ({ address: `${two}:${SOCKS_PORTS.socks}`, username: USERNAME, password: PASSWORD, ...more });
  async function create(network: object = {}): Promise<Sandbox> {
    const body = { templateID: "base", timeout: 600, network: { egressProxy: chosen(), ...network } };
    const answer = await callApi(platform, "/v2/sandboxes", { body });
    expect(answer).toMatchObject({ status: 201 });
    expect(JSON.stringify(answer.body)).not.toContain(PASSWORD);
    const sandbox = await connect((answer.body as { sandboxID: string }).sandboxID);
    await sandbox.files.write("/tmp/client.py", PROGRAM);
    await proxy.asked();
    await internet.asked();
    return sandbox;
  }
  const update = async ({ sandboxId }: Sandbox, body: object) => {
    expect(await callApi(platform, `/sandboxes/${sandboxId}/network`, { method: "PUT", body })).toMatchObject({ status: 204 });
  };
  async function run(sandbox: Sandbox, steps: readonly Step[]): Promise<unknown[]> {
    await sandbox.files.write("/tmp/steps.json", JSON.stringify(steps));
    return JSON.parse((await sandbox.commands.run("python3 /tmp/client.py /tmp/steps.json", { timeoutMs: 300_000 })).stdout);
  }
  const plain = () => ({ do: "http", name: one, address: one, port: INTERNET_PORT });
  const failed = expect.objectContaining({ error: expect.any(String) });
  /** The server tells whose connection it is. */
  const throughProxy = () => expect.objectContaining({ status: 200, text: two });
  const directly = () => expect.objectContaining({ status: 200, text: internet.hostAddress });
  const connected = (kind: string, host: string, port: number) => expect.objectContaining({ event: "connect", kind, host, port });

  it("gets every connection and looks every name up; nothing leaves around it", async () => {
    const sandbox = await create();
    expect(
      await run(sandbox, [
        { do: "http", name: HIDDEN },
        { do: "https", name: HIDDEN },
        { do: "connect", address: HIDDEN, port: SOCKS_PORTS.greeting },
        plain(),
        { do: "udp", address: one, port: INTERNET_PORT },
        { do: "dns", name: KNOWN, server: one, kind: 16 },
        { do: "dns", name: HIDDEN, server: "8.8.8.8", tcp: true },
        { do: "connect", address: CLOSED_ADDRESSES[0], port: INTERNET_PORT },
        { do: "connect", address: "198.19.1.2", port: 80 },
      ]),
    ).toEqual([
      expect.objectContaining({ status: 200, host: HIDDEN, address: one }),
      expect.objectContaining({ status: 200, servername: HIDDEN, address: one }),
      { got: 6 },
      throughProxy(),
      failed,
      expect.objectContaining({ rcode: 0, answers: 0 }),
      expect.objectContaining({ rcode: 0, answers: 1 }),
      failed,
      failed,
    ]);
    expect(await proxy.asked()).toEqual([
      connected("name", HIDDEN, 80),
      connected("name", HIDDEN, 443),
      connected("name", HIDDEN, SOCKS_PORTS.greeting),
      connected("address", one, INTERNET_PORT),
    ]);
    expect(await internet.asked()).toEqual([]);
    await sandbox.kill();
  });

  it("gets only what the policy allows", async () => {
    const sandbox = await create({ allowOut: [HIDDEN, "192.0.2.250"], denyOut: [EVERYTHING] });
    const steps = [
      { do: "https", name: HIDDEN },
      { do: "http", name: OTHER, address: one },
      { do: "dns", name: OTHER, server: one },
      plain(),
      { do: "connect", address: HIDDEN, port: INTERNET_PORT },
    ];
    const refused = expect.objectContaining({ status: 403 });
    expect(await run(sandbox, steps)).toEqual([
      expect.objectContaining({ status: 200 }),
      refused,
      expect.objectContaining({ rcode: 5 }),
      failed,
      failed,
    ]);
    expect(await proxy.asked()).toEqual([connected("name", HIDDEN, 443)]);
    // Where addresses decide, the proxy gets the address that was judged.
    await update(sandbox, { denyOut: [one], egressProxy: chosen({ address: `proxy.example:${SOCKS_PORTS.socks}` }) });
    expect(await run(sandbox, [{ do: "http", name: KNOWN, port: INTERNET_PORT }, plain()])).toEqual([failed, failed]);
    await update(sandbox, { denyOut: ["192.0.2.250"], egressProxy: chosen({ address: `proxy.example:${SOCKS_PORTS.socks}` }) });
    expect(await run(sandbox, [{ do: "http", name: KNOWN, port: INTERNET_PORT }, plain()])).toEqual([throughProxy(), throughProxy()]);
    expect(await proxy.asked()).toEqual([connected("address", one, INTERNET_PORT), connected("address", one, INTERNET_PORT)]);
    await sandbox.kill();
  });

  it("keeps its password from the sandbox, from files and from logs", async () => {
    const sandbox = await create();
    // A client of its own at the proxy's port gets there through the proxy, and with no password.
    const [answer] = await run(sandbox, [{ do: "connect", address: two, port: SOCKS_PORTS.socks, send: "\u0005\u0001\u0000" }]);
    expect(answer).toEqual({ got: 2 });
    expect(await proxy.asked()).toEqual([connected("address", two, SOCKS_PORTS.socks), { event: "anonymous" }]);
    const shown = await callApi(platform, `/sandboxes/${sandbox.sandboxId}`);
    expect((shown.body as { network: object }).network).toEqual({ egressProxy: { address: chosen().address, username: USERNAME } });
    // The file systems of sandboxes are mounted below other folders than these files.
    const search = `find '${platform.dataDir}' -xdev -type f -size -64M -not -path '*/layers/*' -not -path '*/bin/*' -not -path '*/agent/*' -print0`;
    const found = await runCommand("bash", ["-c", `${search} | xargs -0 grep -laF '${PASSWORD}' || true`]);
    expect(found.stdout).toBe("");
    await sandbox.kill();
  });

  it("is never gone around when it fails: away, with a wrong password, hostile, or where no proxy may be", async () => {
    const sandbox = await create();
    const at = (port: number, more: object = {}) => ({ egressProxy: chosen({ address: `${two}:${port}`, ...more }) });
    const wrong = [
      at(1),
      at(SOCKS_PORTS.socks, { password: "another" }),
      at(SOCKS_PORTS.socks, { username: null, password: null }),
      ...[SOCKS_PORTS.garbage, SOCKS_PORTS.reset, SOCKS_PORTS.huge, SOCKS_PORTS.silent].map((port) => at(port)),
      at(SOCKS_PORTS.tls),
      // No TLS, nobody's certificate, another name.
      at(SOCKS_PORTS.socks, { tls: { enabled: true } }),
      at(SOCKS_PORTS.tls, { tls: { enabled: true, serverName: "test.invalid" } }),
      at(SOCKS_PORTS.tls, { tls: { enabled: true, caCert: TEST_CERTIFICATE.cert } }),
      { egressProxy: chosen({ address: `closed.proxy.example:${INTERNET_PORT}` }) },
    ];
    for (const body of wrong) {
      await update(sandbox, body);
      expect(await run(sandbox, [{ do: "connect", address: one, port: INTERNET_PORT, timeout: 3 }]), JSON.stringify(body)).toEqual([
        failed,
      ]);
    }
    const asked = await proxy.asked();
    expect(asked.filter(({ event }) => event === "connect")).toEqual([]);
    const heard = asked.filter(({ event, port }) => event === "heard" && port !== SOCKS_PORTS.huge);
    expect(heard.length).toBeGreaterThan(0);
    expect(JSON.stringify(heard)).not.toContain(PASSWORD);
    for (const address of ["127.0.0.1:1080", "169.254.169.254:80", `${CLOSED_ADDRESSES[0]}:1080`, "[::1]:1080"]) {
      const answer = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/network`, {
        method: "PUT",
        body: { egressProxy: { address } },
      });
      expect(answer).toMatchObject({ status: 400, body: { message: expect.stringMatching(/^Invalid egress proxy config: /) } });
    }
    await update(sandbox, at(SOCKS_PORTS.tls, { tls: { enabled: true, serverName: "test.invalid", caCert: TEST_CERTIFICATE.cert } }));
    expect(await run(sandbox, [plain()])).toEqual([throughProxy()]);
    expect(await proxy.asked()).toEqual([expect.objectContaining({ event: "connect", isEncrypted: true })]);
    await sandbox.kill();
  });

  it("holds after a pause, for forks and after a crash of the platform; a change cuts what goes the former way", async () => {
    const sandbox = await create();
    const fork = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    const [forked] = fork.body as { sandbox: { sandboxID: string } }[];
    await sandbox.pause();
    await connect(sandbox.sandboxId);
    expect(await run(sandbox, [plain()])).toEqual([throughProxy()]);
    await platform.kill9();
    await platform.start();
    for (const id of [sandbox.sandboxId, forked?.sandbox.sandboxID ?? ""]) {
      const held = await connect(id);
      // Until the node has the password again nothing passes, and nothing goes directly.
      const outcomes: unknown[] = [];
      await waitUntil("the proxy is used again", async () => {
        const [outcome] = await run(held, [plain()]);
        outcomes.push(outcome);
        return (outcome as { status?: number }).status === 200;
      });
      expect(outcomes.at(-1)).toEqual(throughProxy());
    }
    const holding = await sandbox.commands.run(`python3 -c '${HOLD}' ${one} ${INTERNET_PORT}`, { background: true, timeoutMs: 0 });
    await waitUntil("the connection is open", () => sandbox.files.exists("/tmp/held"));
    // The same choice again changes nothing.
    await update(sandbox, { egressProxy: chosen() });
    expect(await run(sandbox, [plain()])).toEqual([throughProxy()]);
    expect(await sandbox.files.exists("/tmp/cut")).toBe(false);
    await update(sandbox, {});
    await holding.wait();
    expect(await sandbox.files.exists("/tmp/cut")).toBe(true);
    expect(await run(sandbox, [plain()])).toEqual([directly()]);
    await Promise.all([sandbox.kill(), (await connect(forked?.sandbox.sandboxID ?? "")).kill()]);
  });
});

/** Opens a connection, and waits until it is cut. */
const HOLD = `
import socket, sys
held = socket.create_connection((sys.argv[1], int(sys.argv[2])))
open("/tmp/held", "w").close()
try: held.recv(1)
except ConnectionResetError: pass
open("/tmp/cut", "w").close()`.replaceAll("'", '"');
