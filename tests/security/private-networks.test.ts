// Private networks that the operator opens to sandboxes: docs/network.md.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "../e2e/client.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT, startInternet, type TestInternet } from "./test-internet.ts";

const [OPENED = "", ...OTHERS] = CLOSED_ADDRESSES;

describe.each(runtimesFor("private networks of the operator"))("a private network that is open to sandboxes on %s", (runtime) => {
  let internet: TestInternet;
  let platform: Platform;

  beforeAll(async () => {
    internet = await startInternet();
    // The pool of sandboxes is in 10.0.0.0/8.
    platform = await startPlatform({ runtime, env: { SKERRY_ALLOW_PRIVATE: `${OPENED},10.0.0.0/8` } });
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await internet?.[Symbol.asyncDispose]();
  });

  const create = (network: object = {}) => Sandbox.create({ ...clientOf(platform), network });
  /** The addresses that answer over TCP. */
  async function reached(from: Sandbox, addresses: readonly string[], port = INTERNET_PORT): Promise<string[]> {
    const probe = addresses.map((address) => `(timeout 4 bash -c 'exec 3<>/dev/tcp/${address}/${port}' 2>/dev/null && echo ${address}) & `);
    return (await from.commands.run(`${probe.join("")}wait`)).stdout
      .split("\n")
      .filter((line) => line !== "")
      .toSorted();
  }
  const addressesOf = ({ sandboxId }: Sandbox): { host: string; guest: string } =>
    JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8")).slot.addresses;

  it("is reached, and no other; not the host, and no other sandbox", async () => {
    const [sandbox, neighbour] = await Promise.all([create(), create()]);
    expect(await reached(sandbox, [OPENED, internet.publicAddress, ...OTHERS, internet.hostAddress])).toEqual(
      [OPENED, internet.publicAddress, ...OTHERS.filter((address) => address.startsWith("10."))].toSorted(),
    );
    expect(await reached(sandbox, [addressesOf(neighbour).guest], 49_983)).toEqual([]);
    expect(await reached(sandbox, [addressesOf(neighbour).host, addressesOf(sandbox).host], platform.ports.api)).toEqual([]);
    await Promise.all([sandbox.kill(), neighbour.kill()]);
  });

  it("is closed by what a caller denies; what a caller allows opens nothing else", async () => {
    const sandbox = await create({ denyOut: [OPENED] });
    expect(await reached(sandbox, [OPENED, internet.publicAddress])).toEqual([internet.publicAddress]);
    await sandbox.updateNetwork({ denyOut: ["0.0.0.0/0"], allowOut: [OPENED, "172.16.0.0/12", "169.254.0.0/16"] });
    expect(await reached(sandbox, [internet.publicAddress, ...CLOSED_ADDRESSES])).toEqual([OPENED]);
    await sandbox.kill();
  });
});
