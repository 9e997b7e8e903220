import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { agentOfFile, startAgentUnderTest } from "./agent-under-test.ts";
import { canMount, mountSmallDisk } from "./small-disk.ts";
import { uploadTo } from "./watching.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "skerry-compose-")));
  return () => rm(folder, { recursive: true, force: true });
});

function file(name: string, content?: string): string {
  const path = join(folder, name);
  if (content !== undefined) writeFileSync(path, content);
  return path;
}

async function compose(body: unknown): Promise<{ status: number; type: string | null; body: unknown }> {
  const response = await agent.fetch("/files/compose", {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, type: response.headers.get("content-type"), body: await response.json() };
}

const refused = (status: number, message: unknown) => ({ status, body: { code: status, message } });

it("joins the sources in their order, owned by the user, and removes them", async () => {
  const sources = [file("1", "one,"), file("2", "two,"), file("3", "three")];
  const destination = file("new/deep/all");
  expect(await compose({ source_paths: sources, destination, username: "nobody" })).toEqual({
    status: 200,
    type: "application/json",
    body: { name: "all", path: destination, type: "file" },
  });
  expect(readFileSync(destination, "utf8")).toBe("one,two,three");
  expect(statSync(destination)).toMatchObject({ uid: 65534, mode: 0o100644 });
  expect(statSync(file("new"))).toMatchObject({ uid: 65534, mode: 0o040755 });
  expect(sources.filter(existsSync)).toEqual([]);
  expect(readdirSync(file("new/deep"))).toEqual(["all"]);
});

it("replaces the destination, appends a source twice that is listed twice, and follows links to files", async () => {
  const destination = file("all", "before");
  const real = file("real", "r");
  symlinkSync("real", file("link"));
  const twice = file("twice", "t");
  expect((await compose({ source_paths: [twice, file("link"), twice], destination })).status).toBe(200);
  expect(readFileSync(destination, "utf8")).toBe("trt");
  expect([existsSync(twice), existsSync(file("link")), existsSync(real)]).toEqual([false, false, true]);
});

it("keeps the result when a source is the destination under another name", async () => {
  const destination = file("all", "old,");
  linkSync(destination, file("hard"));
  const roundabout = `${folder}/./all`;
  expect((await compose({ source_paths: [roundabout, file("hard"), file("b", "new")], destination })).status).toBe(200);
  expect(readFileSync(destination, "utf8")).toBe("old,old,new");
  expect(readdirSync(folder)).toEqual(["all"]);
});

it("refuses a malformed body", async () => {
  for (const body of ["", "{", "[]", "null", { source_paths: "x" }, { source_paths: [1] }, { source_paths: ["x"], destination: 1 }]) {
    expect(await compose(body)).toMatchObject(refused(400, expect.stringMatching(/^invalid request body: /)));
  }
  expect(await compose({ destination: "x" })).toMatchObject(refused(400, "source_paths must not be empty"));
  expect(await compose({ source_paths: [], destination: "x" })).toMatchObject(refused(400, "source_paths must not be empty"));
  expect(await compose({ source_paths: ["x"], destination: null })).toMatchObject(refused(400, "destination is required"));
  expect(await compose({ source_paths: ["x"], destination: "y", username: "ghost" })).toMatchObject(
    refused(401, expect.stringContaining("unknown user ghost")),
  );
});

it("refuses paths before it writes anything", async () => {
  const good = file("good", "x");
  const destination = file("sub/all");
  const ask = (...paths: string[]) => compose({ source_paths: [good, ...paths], destination });
  expect(await ask("~nobody/x")).toMatchObject(refused(400, expect.stringMatching(/^error resolving source path "~nobody\/x"/)));
  expect(await compose({ source_paths: [good], destination: "~nobody/x" })).toMatchObject(
    refused(400, expect.stringMatching(/^error resolving destination path/)),
  );
  expect(await ask("/etc/\0")).toMatchObject(refused(400, expect.stringMatching(/NUL/)));
  expect(await ask(destination)).toMatchObject(refused(400, `source path "${destination}" cannot be the same as destination`));
  for (const missing of [file("nope"), "nope-at-home", "~/nope-at-home"]) {
    expect(await ask(missing)).toMatchObject(refused(404, `source file not found: ${missing}`));
  }
  execFileSync("mkfifo", [file("fifo")]);
  for (const path of [folder, file("fifo"), "/dev/null"]) {
    expect(await ask(path)).toMatchObject(refused(400, `source path is not a regular file: ${path}`));
  }
  expect(readdirSync(folder).sort()).toEqual(["fifo", "good"]);
});

it("drops the metadata of the sources and of the old destination", async () => {
  const [source, destination] = [file("source"), file("all")];
  for (const path of [source, destination]) await uploadTo(agent, path, "x", { "X-Metadata-Colour": "red" });
  expect(await compose({ source_paths: [source], destination })).toMatchObject({
    status: 200,
    body: { name: "all", path: destination, type: "file" },
  });
  expect((await agent.filesystem.stat({ path: destination })).entry?.metadata).toEqual({});
});

it.runIf(canMount())("leaves sources and destination as they were when the disk is full", async () => {
  using _disk = mountSmallDisk(file("small"));
  const destination = file("small/all", "before");
  const sources = [file("a", "x".repeat(50_000)), file("b", "x".repeat(50_000))];
  expect(await compose({ source_paths: sources, destination })).toMatchObject(refused(507, "not enough disk space available"));
  expect(readFileSync(destination, "utf8")).toBe("before");
  expect(readdirSync(file("small"))).toEqual(["all"]);
  expect(sources.every(existsSync)).toBe(true);
});

it("leaves sources as they were when the destination is a directory", async () => {
  mkdirSync(file("directory"));
  const source = file("source", "x");
  expect((await compose({ source_paths: [source], destination: file("directory") })).status).toBe(500);
  expect(readdirSync(folder).filter((name) => name.includes("compose"))).toEqual([]);
  expect(existsSync(source)).toBe(true);
});

it("requires the access token, and accepts no signature", async () => {
  await using secured = await startAgentUnderTest();
  await secured.init({ accessToken: "token" });
  const body = JSON.stringify({ source_paths: [file("s", "x")], destination: file("d") });
  expect((await secured.fetch("/files/compose?signature=v1_x", { method: "POST", body })).status).toBe(401);
  const headers = { "X-Access-Token": "token" };
  expect((await secured.fetch("/files/compose", { method: "POST", body, headers })).status).toBe(200);
});
