// The template commands of the official command line, from npm.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { prepareE2bCli, startRegistry, tarArchive } from "@skerry/testkit";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const folder = mkdtempSync(join(tmpdir(), "skerry-cli-"));
const name = `cli-${process.pid}`;
let platform: SharedPlatform;
let program: string;

beforeAll(async () => {
  platform = await sharedPlatform("gvisor");
  program = await prepareE2bCli();
});

afterAll(async () => {
  await platform?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function e2b(...args: string[]): Promise<string> {
  const env = { PATH: "/usr/bin:/bin", HOME: folder, NO_COLOR: "1", ...platform.env };
  return (await runCommand(process.execPath, [program, "template", ...args], { cwd: folder, env, timeoutMs: 100_000 })).stdout;
}

async function isPublic(): Promise<unknown> {
  const { body } = await callApi(platform, "/templates");
  return (body as { names: string[]; public: boolean }[]).find(({ names }) => names.some((one) => one.endsWith(name)))?.public;
}

it("creates, lists, publishes and deletes a template", async () => {
  await using registry = await startRegistry();
  const image = await registry.push("tiny:v1", { layers: [tarArchive([{ path: "hello", content: "tiny" }])] });
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "file"), "copied");
  writeFileSync(join(project, "e2b.Dockerfile"), [`FROM ${image}`, "COPY file /copied", "RUN cat /copied /hello > /both"].join("\n"));
  const size = ["--cpu-count", "1", "--memory-mb", "512"];
  await e2b("create", name, "--path", project, "--cmd", "echo started > /tmp/ready", "--ready-cmd", "test -f /tmp/ready", ...size);
  const sandbox = await Sandbox.create(name, clientOf(platform));
  expect((await sandbox.commands.run("cat /both /tmp/ready")).stdout).toBe("copiedtinystarted\n");
  await sandbox.kill();
  const listed = JSON.parse(await e2b("list", "--format", "json")) as { aliases: string[] }[];
  expect(listed.filter(({ aliases }) => aliases.some((alias) => alias.endsWith(name)))).toMatchObject([
    { public: false, buildStatus: "ready" },
  ]);
  await e2b("publish", name, "--yes");
  expect(await isPublic()).toBe(true);
  await e2b("unpublish", name, "--yes");
  expect(await isPublic()).toBe(false);
  await e2b("delete", name, "--yes");
  expect(await isPublic()).toBeUndefined();
});

it("makes a new template's files, and those of a template of the old kind", async () => {
  const fresh = join(folder, "fresh");
  mkdirSync(fresh);
  await e2b("init", "--path", fresh, "--name", "fresh", "--language", "typescript");
  expect(readdirSync(join(fresh, "fresh"))).toContain("template.ts");
  const old = join(folder, "old");
  mkdirSync(old);
  writeFileSync(join(old, "e2b.Dockerfile"), "FROM ubuntu:22.04\nRUN echo hello\n");
  writeFileSync(join(old, "e2b.toml"), 'template_id = "abc"\ntemplate_name = "old"\ndockerfile = "e2b.Dockerfile"\n');
  await e2b("migrate", "--path", old, "--language", "python-sync");
  expect(readFileSync(join(old, "template.py"), "utf8")).toContain("ubuntu:22.04");
});
