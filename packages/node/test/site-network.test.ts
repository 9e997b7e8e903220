import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "@skerry/base";
import type { BuildSandbox } from "@skerry/builder";
import { type LayerDigest, parseLayerDigest } from "@skerry/layers";
import { networkNames } from "@skerry/runtime";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NO_SITE } from "@skerry/wire";
import { StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommandIn } from "../src/builds/run-command.ts";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

interface StoredRecord {
  readonly sandboxId: string;
  readonly state: string;
  readonly isRestored?: boolean;
  readonly slot: { readonly addresses: { readonly guest: string } };
}

const STORE = "etc/ssl/certs/ca-certificates.crt";
const certificate = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
const SITE = new Secret({ ...NO_SITE, certificates: certificate("the-site"), httpsProxy: "http://user:password@10.254.254.254:3128" });

function fill(dir: string): void {
  mkdirSync(join(dir, "etc/ssl/certs"), { recursive: true });
  writeFileSync(join(dir, STORE), certificate("the-image"));
}

describe.each(runtimesFor("builds behind a proxy"))("builds on %s, on a site with its own certificates", (runtime) => {
  let under: NodeUnderTest;
  let base: LayerDigest;
  beforeAll(async () => {
    under = await startNode(runtime, { site: SITE, fill });
    base = parseLayerDigest(under.layer);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  const { signal } = new AbortController();
  const start = (...layers: LayerDigest[]): Promise<BuildSandbox> =>
    under.node.buildHost.startSandbox({
      buildId: "b",
      templateId: "t",
      layers: [base, ...layers],
      size: { cpuCount: 1, memoryMb: 256, diskSizeMb: 64 },
      runtime: "",
      signal,
    });
  const run = async (sandbox: BuildSandbox, command: string, env: Record<string, string> = {}): Promise<string[]> => {
    const lines: string[] = [];
    const argv = ["/bin/sh", "-c", command];
    await sandbox.run({ argv, user: "root", workdir: "", env, timeoutMs: 60_000, signal, onLine: (line) => void lines.push(line) });
    return lines;
  };
  const commit = async (sandbox: BuildSandbox) => {
    const layer = await sandbox.commit("a-build");
    return layer && { layer, dir: await under.config.layers.path(layer) };
  };

  it("give each command the variables and a store with the certificates, and leave no trace of them in layers", async () => {
    const sandbox = await start();
    const seen = await run(sandbox, "echo $https_proxy; grep -c the- $SSL_CERT_FILE; grep the- /etc/ssl/certs/ca-certificates.crt");
    expect(seen).toEqual(["http://user:password@10.254.254.254:3128", "2", "the-image", "the-site"]);
    expect(await run(sandbox, "echo $HTTPS_PROXY", { https_proxy: "http://own:1" })).toEqual([""]);
    const committed = await commit(sandbox);
    // Directories of the agent and the runtime: a layer that has them already makes the next step's empty.
    expect(readdirSync(committed?.dir ?? "").filter((name) => name === "etc")).toEqual([]);
    expect(await commit(await start(...(committed ? [committed.layer] : [])))).toBeUndefined();
    under.config.layers.release("a-build");
  });

  it("keep what a step does to the store itself", async () => {
    const sandbox = await start();
    await run(sandbox, `cd /etc/ssl/certs; echo the-guest >> ca-certificates.crt; chmod 600 ca-certificates.crt`);
    const committed = await commit(sandbox);
    expect(readFileSync(join(committed?.dir ?? "", STORE), "utf8")).toBe(`${certificate("the-image")}the-guest\n`);
    expect(lstatSync(join(committed?.dir ?? "", STORE)).mode & 0o777).toBe(0o600);
    const next = await start(...(committed ? [committed.layer] : []));
    expect(await run(next, "grep the- $SSL_CERT_FILE")).toEqual(["the-image", "the-guest", "the-site"]);
    expect(await commit(next)).toBeUndefined();
    under.config.layers.release("a-build");
  });

  it("follow no link that a step puts in the place of a directory", async () => {
    const sandbox = await start();
    await run(sandbox, "mv /etc/ssl/certs /etc/ssl/moved; ln -s /etc/ssl/moved /etc/ssl/certs; true");
    const committed = await commit(sandbox);
    expect(lstatSync(join(committed?.dir ?? "", "etc/ssl/certs")).isSymbolicLink()).toBe(true);
    under.config.layers.release("a-build");
  });

  it("open exactly the proxy's port in the firewall, and nothing once there is no proxy", async () => {
    const { table } = networkNames(under.config.instance);
    const proxies = () => {
      const { nftables } = JSON.parse(execFileSync("nft", ["-j", "list", "set", "inet", table, "proxies"], { encoding: "utf8" })) as {
        nftables: { set?: { elem?: { concat: unknown }[] } }[];
      };
      return nftables.flatMap(({ set }) => set?.elem?.map(({ concat }) => concat) ?? []);
    };
    expect(proxies()).toEqual([["10.254.254.254", 3128]]);
    await under.restart({ site: new Secret(NO_SITE) });
    expect(proxies()).toEqual([]);
  });

  it("write the settings to no record", () => {
    const files = readdirSync(under.config.dir, { recursive: true, withFileTypes: true }).filter(
      (entry) => entry.isFile() && /\.json/.test(entry.name),
    );
    expect(files.length).toBeGreaterThan(0);
    for (const { parentPath, name } of files) expect(readFileSync(join(parentPath, name), "utf8")).not.toMatch(/password|the-site/);
  });
});

describe("a change of the site's settings, on gvisor", () => {
  const other = new Secret({ ...NO_SITE, certificates: certificate("the-other-site"), httpProxy: "http://10.254.254.253:8080" });
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode("gvisor", { site: SITE, fill, poolSize: 1 });
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  const ids = (name: string) => `i${name.padStart(19, "0")}`;
  const records = () =>
    readdirSync(join(under.config.dir, "sandboxes")).flatMap((name) => {
      const file = join(under.config.dir, "sandboxes", name, "sandbox.json");
      return existsSync(file) ? [JSON.parse(readFileSync(file, "utf8")) as StoredRecord] : [];
    });
  /** The first one only serves to take the image, from which the others are restored. */
  const poolFull = () =>
    waitUntil("a sandbox is ready", () => records().some(({ state, isRestored }) => state === "pooled" && isRestored === true), 60_000);
  /** What a new process sees of the settings. */
  async function seenIn(sandboxId: string): Promise<string> {
    const found = records().find((record) => record.sandboxId === sandboxId);
    const target = { address: found?.slot.addresses.guest ?? "", token: "a-token", lost: new AbortController().signal };
    const lines: string[] = [];
    await runCommandIn(target, {
      argv: ["/bin/sh", "-c", `grep -h the- /${STORE} $SSL_CERT_FILE; echo "$http_proxy $https_proxy"`],
      user: "root",
      workdir: "",
      env: {},
      timeoutMs: 30_000,
      signal: new AbortController().signal,
      onLine: (line) => void lines.push(line),
    });
    return lines.join(" ").trim();
  }
  const create = async (name: string) =>
    StartKind[(await under.client.createSandbox({ spec: { ...under.spec(ids(name)) } })).startKind as StartKind];
  const resume = async (name: string, imageId: string) =>
    StartKind[(await under.client.resumeSandbox({ spec: { ...under.spec(ids(name)), imageId } })).startKind as StartKind];
  const images = () => readdirSync(join(under.config.dir, "images")).filter((name) => name.startsWith("t"));
  const FORMER = "the-image the-site the-image the-site  http://user:password@10.254.254.254:3128";
  const CHANGED = "the-image the-other-site the-image the-other-site http://10.254.254.253:8080";
  const NONE = "the-image";

  it("reaches new sandboxes, ready ones, resumed ones and those from snapshots; the memory of none is lost", async () => {
    expect(await create("1")).toBe("BOOT");
    await poolFull();
    expect(await create("2")).toBe("CLAIM");
    expect([await seenIn(ids("1")), await seenIn(ids("2"))]).toEqual([FORMER, FORMER]);
    const formerImages = images();
    await under.client.snapshotSandbox({ sandboxId: ids("1"), imageId: ids("snap"), memory: true });
    expect(await seenIn(ids("1"))).toBe(FORMER);
    await under.client.pauseSandbox({ sandboxId: ids("2"), imageId: ids("paused"), memory: true });
    await under.restart({ site: other });
    // It runs on with what it was told.
    expect(await seenIn(ids("1"))).toBe(FORMER);
    expect(await resume("2", ids("paused"))).toBe("RESTORE");
    expect(await seenIn(ids("2"))).toBe(CHANGED);
    const fromSnapshot = { ...under.spec(ids("3")), imageId: ids("snap") };
    expect((await under.client.createSandbox({ spec: fromSnapshot })).startKind).toBe(StartKind.RESTORE);
    expect(await seenIn(ids("3"))).toBe(CHANGED);
    await create("4");
    expect(await seenIn(ids("4"))).toBe(CHANGED);
    await poolFull();
    expect(images()).not.toEqual(formerImages);
    expect(await create("5")).toBe("CLAIM");
    expect(await seenIn(ids("5"))).toBe(CHANGED);
  });

  it("takes everything back when the operator removes the settings, also from a disk without its memory", async () => {
    await under.client.pauseSandbox({ sandboxId: ids("2"), imageId: ids("again"), memory: true });
    await under.client.pauseSandbox({ sandboxId: ids("4"), imageId: ids("disk"), memory: false });
    await under.restart({ site: undefined } as object);
    expect([await resume("2", ids("again")), await resume("4", ids("disk"))]).toEqual(["RESTORE", "BOOT"]);
    expect([await seenIn(ids("2")), await seenIn(ids("4"))]).toEqual([NONE, NONE]);
    for (const { sandboxId } of records()) if (sandboxId !== "") await under.client.killSandbox({ sandboxId });
  });
});
