// Rules for names, attacked from inside sandboxes: docs/network.md.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { egressOf, type ShownLine } from "./egress-lines.ts";
import { helloWithEch } from "./hello-with-ech.ts";
import { type NamedInternet, startNamedInternet } from "./named-internet.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT } from "./test-internet.ts";

const EVERYTHING = "0.0.0.0/0";
const PROGRAM = readFileSync(join(import.meta.dirname, "egress-client.py"), "utf8");

type Step = { readonly do: string } & Record<string, unknown>;
type Outcome = Record<string, unknown>;

describe.each(runtimesFor("rules for names"))("rules for names on %s", (runtime) => {
  let internet: NamedInternet;
  let platform: Platform;
  /** The two public addresses. */
  let one: string;
  let two: string;

  beforeAll(async () => {
    internet = await startNamedInternet(({ publicAddress, otherPublicAddress, hostAddress }) => ({
      "good.example": { addresses: [[publicAddress]] },
      "a.wild.example": { addresses: [[otherPublicAddress]] },
      "wild.example": { addresses: [[publicAddress]] },
      "evil.example": { addresses: [[otherPublicAddress]], text: "out" },
      "alias.good.example": { alias: "evil.example" },
      "private.wild.example": { addresses: [[CLOSED_ADDRESSES[0] ?? ""]] },
      "host.wild.example": { addresses: [[hostAddress]] },
      "rebound.wild.example": { addresses: [[publicAddress], [CLOSED_ADDRESSES[1] ?? ""]] },
    }));
    [one, two] = [internet.publicAddress, internet.otherPublicAddress];
    platform = await startPlatform({ runtime, env: { SKERRY_DNS: internet.resolver } });
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await internet?.[Symbol.asyncDispose]();
  });

  const connect = (id: string) => Sandbox.connect(id, { ...clientOf(platform), timeoutMs: 600_000 });
  async function create(allowOut: readonly string[], more: object = {}): Promise<Sandbox> {
    const network = { allowOut, denyOut: [EVERYTHING], ...more };
    const answer = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 600, network } });
    expect(answer).toMatchObject({ status: 201 });
    return await connect((answer.body as { sandboxID: string }).sandboxID);
  }
  async function run(sandbox: Sandbox, steps: readonly Step[]): Promise<Outcome[]> {
    await sandbox.files.write("/tmp/client.py", PROGRAM);
    await sandbox.files.write("/tmp/steps.json", JSON.stringify(steps));
    return JSON.parse((await sandbox.commands.run("python3 /tmp/client.py /tmp/steps.json", { timeoutMs: 300_000 })).stdout);
  }
  const failed = expect.objectContaining({ error: expect.any(String) });

  it("open allowed names on ports 80 and 443, and wildcards at any depth below their own name", async () => {
    const sandbox = await create(["Good.example", "*.wild.example"]);
    expect(
      await run(sandbox, [
        { do: "http", name: "good.example" },
        { do: "https", name: "good.example" },
        { do: "https", name: "a.wild.example" },
        { do: "https", name: "wild.example" },
        { do: "https", name: "wild.example", address: one },
        { do: "http", name: "evil.example", address: two },
        { do: "https", name: "evil.example", address: two },
      ]),
    ).toEqual([
      expect.objectContaining({ status: 200, host: "good.example", address: one, port: 80 }),
      expect.objectContaining({ status: 200, servername: "good.example", address: one, port: 443 }),
      expect.objectContaining({ status: 200, servername: "a.wild.example", address: two }),
      failed,
      failed,
      expect.objectContaining({ status: 403 }),
      failed,
    ]);
    await egressOf(platform, sandbox.sandboxId, (lines) => {
      const allowed = lines.filter(({ verdict }) => verdict === "allowed");
      expect(allowed).toContainEqual(line("tls", "good.example", one, 443, { rule: "Good.example", verdict: "allowed" }));
      expect(allowed).toContainEqual(line("http", "good.example", one, 80, { rule: "Good.example", verdict: "allowed" }));
      expect(allowed).toContainEqual(line("tls", "a.wild.example", two, 443, { rule: "*.wild.example", verdict: "allowed" }));
      for (const { sentBytes, receivedBytes } of allowed) expect(Math.min(sentBytes, receivedBytes)).toBeGreaterThan(50);
    });
    await sandbox.kill();
  });

  it("refuse every attempt to reach something else, and each leaves a line", async () => {
    const sandbox = await create(["good.example", "*.wild.example"]);
    const outcomes = await run(sandbox, [
      { do: "dns", name: "evil.example", server: one },
      { do: "dns", name: "secret-data.tunnel.example", server: "8.8.8.8", kind: 16, tcp: true },
      { do: "https", name: "private.wild.example", address: one },
      { do: "http", name: "host.wild.example", address: one },
      { do: "https", name: "good.example", sni: "evil.example" },
      { do: "https", name: "good.example", sni: null },
      { do: "http", name: "good.example", host: "evil.example" },
      { do: "split", name: "split.evil.example", address: one, size: 1 },
      { do: "split", name: "records.evil.example", address: one, size: 7, records: true },
      { do: "connect", address: one, port: 443, send: helloWithEch("good.example") },
      { do: "connect", address: one, port: 443, send: "SSH-2.0-client\r\n" },
      { do: "connect", address: two, port: INTERNET_PORT, timeout: 2 },
      { do: "udp", address: one, port: 443 },
      { do: "http", name: "good.example", raw: "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n" },
    ]);
    expect(outcomes.slice(0, 2)).toEqual([
      expect.objectContaining({ rcode: 5, answers: 0 }),
      expect.objectContaining({ rcode: 5, answers: 0 }),
    ]);
    for (const { status = 403 } of outcomes.slice(2)) expect(status).toBe(403);
    // An alert of seven bytes, and nothing of the server.
    expect(outcomes[9]).toEqual({ got: 7 });
    await egressOf(platform, sandbox.sandboxId, (lines) => {
      for (const expected of [
        line("dns", "evil.example", "", 53, { rule: "name_not_allowed" }),
        line("dns", "secret-data.tunnel.example", "", 53, { rule: "name_not_allowed" }),
        line("tls", "private.wild.example", CLOSED_ADDRESSES[0] ?? "", 443, { rule: "own_network" }),
        line("http", "host.wild.example", internet.hostAddress, 80, { rule: "own_network" }),
        line("tls", "evil.example", one, 443, { rule: "name_not_allowed" }),
        line("tls", "", one, 443, { rule: "no_name" }),
        line("http", "evil.example", one, 80, { rule: "name_not_allowed" }),
        line("tls", "split.evil.example", one, 443, { rule: "name_not_allowed" }),
        line("tls", "records.evil.example", one, 443, { rule: "name_not_allowed" }),
        line("tls", "good.example", one, 443, { rule: "encrypted_client_hello" }),
        line("tls", "", one, 443, { rule: "not_decidable" }),
        line("tcp", "", two, INTERNET_PORT, { rule: "address_closed" }),
        line("udp", "", one, 443, { rule: "address_closed" }),
        line("http", "evil.example:443", one, 80, { rule: "bad_request" }),
      ])
        expect(lines).toContainEqual(expected);
    });
    await sandbox.kill();
  });

  it("leave no tunnel through name servers, except to those that the caller lists", async () => {
    const tunnel = { do: "dns", name: "stolen.evil.example", server: one };
    const [overTcp, another] = [
      { ...tunnel, tcp: true },
      { ...tunnel, server: "8.8.8.8" },
    ];
    const named = { do: "https", name: "good.example", address: two };
    const echo = { do: "udp", address: one, port: INTERNET_PORT };
    /** Without an answer for so long. */
    const dropped = (step: Step) => ({ ...step, timeout: 1 });
    const refused = expect.objectContaining({ rcode: 5 });
    const reached = expect.objectContaining({ rcode: 3 });
    const works = expect.objectContaining({ status: 200, address: one });
    const sandbox = await create(["good.example"]);
    await internet.asked();
    const redirected = [tunnel, overTcp, { ...tunnel, kind: 16 }, another, dropped(echo), named];
    expect(await run(sandbox, redirected)).toEqual([refused, refused, refused, refused, failed, works]);
    expect(await internet.asked()).toEqual(["A good.example"]);
    const update = async (allowOut: readonly string[], dnsServers?: readonly string[]) => {
      const body = { allowOut, denyOut: [EVERYTHING], ...(dnsServers && { dnsServers }) };
      const answer = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/network`, { method: "PUT", body });
      expect(answer).toMatchObject({ status: 204 });
    };
    await update(["good.example"], [one]);
    const listed = [tunnel, overTcp, { ...echo, timeout: 20 }, dropped(another), named];
    expect(await run(sandbox, listed)).toEqual([reached, reached, { got: 5 }, failed, works]);
    expect((await internet.asked()).filter((question) => question.endsWith("stolen.evil.example")).length).toBe(2);
    await update(["good.example"], []);
    const none = [dropped(tunnel), dropped(overTcp), dropped(another), dropped(echo), named];
    expect(await run(sandbox, none)).toEqual([failed, failed, failed, failed, works]);
    // Without names nothing is open, and a private one never is.
    await update([two], [one]);
    expect(await run(sandbox, [dropped(tunnel), dropped(echo)])).toEqual([failed, failed]);
    await update(["good.example"], CLOSED_ADDRESSES);
    const closed = CLOSED_ADDRESSES.slice(0, 2).map((address) => dropped({ ...echo, address }));
    expect(await run(sandbox, closed)).toEqual(closed.map(() => failed));
    await update(["good.example"]);
    expect(await run(sandbox, [tunnel, overTcp])).toEqual([refused, refused]);
    await sandbox.kill();
  });
});

function line(protocol: string, name: string, address: string, port: number, more: Partial<ShownLine>): ShownLine {
  return expect.objectContaining({ protocol, name, address, port, verdict: "refused", count: expect.any(Number), ...more });
}
