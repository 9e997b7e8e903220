import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENT_ROOT, agentCommand } from "@skerry/agent";
import { assembleAgent } from "@skerry/agent/assemble";
import { AGENT_VERSION } from "@skerry/wire";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assembledTree } from "./agent-under-test.ts";

const arch = process.arch === "arm64" ? "arm64" : "x64";
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skerry-assemble-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it("makes the same tree each time, also concurrently, and leaves no other files", async () => {
  const options = { outDir: join(folder, "out"), workDir: join(folder, "work") };
  const made = await Promise.all([assembleAgent(options), assembleAgent(options)]);
  made.push(await assembleAgent(options));
  const { digest } = await assembledTree();
  expect(made).toEqual(Array(3).fill({ digest, version: AGENT_VERSION, path: join(options.outDir, digest) }));
  expect(readdirSync(options.outDir)).toEqual([digest]);
  expect(readdirSync(options.workDir)).toEqual([]);
});

it("contains everything that the command needs, readable for all users", async () => {
  const { path } = await assembledTree();
  for (const argument of agentCommand(arch).filter((text) => text.startsWith(`${AGENT_ROOT}/`))) {
    expect(statSync(path + argument.slice(AGENT_ROOT.length)).mode & 0o444).toBe(0o444);
  }
});

it("needs no library of the image", async () => {
  const { path } = await assembledTree();
  const [loader = "", flag = "", libraries = "", node = ""] = agentCommand(arch, { root: path });
  for (const program of [node, join(path, "native/koffi.node")]) {
    const used = execFileSync(loader, ["--list", program], { env: { LD_LIBRARY_PATH: libraries } }).toString();
    const paths = [...used.matchAll(/=> (\S+)/g)].map((match) => match[1]);
    expect(flag).toBe("--library-path");
    expect(paths.filter((library) => !library?.startsWith(libraries))).toEqual([]);
  }
});

it("has a code cache that its own Node.js accepts", async () => {
  const { path } = await assembledTree();
  const [command = "", ...args] = agentCommand(arch, { root: path }).slice(0, -1);
  const program = readFileSync(join(path, "agent.js"), "utf8").replace(
    /script\.runInThisContext[^\n]*/,
    "console.log(script.cachedDataRejected)",
  );
  const output = execFileSync(command, [...args, "-e", program.replaceAll("__dirname +", `${JSON.stringify(path)} +`)]).toString();
  expect(output).toBe("false\n");
});
