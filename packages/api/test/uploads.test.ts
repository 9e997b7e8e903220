import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import type { ApiHarness } from "./api-harness.ts";
import { begun, ended, requestBuild, startBuild, statusOf, trigger } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const HASH = "0123456789abcdef".repeat(4);
const digestOf = (bytes: string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

async function blobsOf(api: ApiHarness): Promise<string[]> {
  const root = join(await api.blobsDir, "blobs");
  return (await Promise.all((await readdir(root)).map((shard) => readdir(join(root, shard))))).flat().map((hex) => `sha256:${hex}`);
}

const stagedOf = async (api: ApiHarness) => await readdir(join(await api.blobsDir, "staging"));

describeOnEachDatabase("an upload", { inSample: "sqlite" }, (api) => {
  const linkOf = async (templateID: string, hash = HASH) => {
    const answer = await api().call("GET", `/templates/${templateID}/files/${hash}`);
    expect(answer, answer.text).toMatchObject({ status: 201 });
    return answer.body as { present: boolean; url: string };
  };
  const put = (url: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(url, { method: "PUT", body: body as string, headers });
  const newLink = async () => (await linkOf((await requestBuild(api(), "web")).templateID)).url;

  it("goes to the API itself, is shared by the templates of its team, and reaches the node by its digest", async () => {
    const ids = await requestBuild(api(), "web");
    const { present, url } = await linkOf(ids.templateID);
    expect(present).toBe(false);
    expect(url.startsWith(`${api().url}/upload?`)).toBe(true);
    expect((await put(url, "first")).status).toBe(200);
    expect((await put(url, "second", { "Content-Type": "application/octet-stream" })).status).toBe(200);
    const other = await requestBuild(api(), "other");
    expect(await linkOf(other.templateID)).toEqual({ present: true, url: expect.any(String) });
    await trigger(api(), ids, { fromImage: "x", steps: [{ type: "COPY", args: [".", "/", "", ""], filesHash: HASH }] });
    await ended(api(), ids);
    expect(api().node.builds.started[0]?.steps[0]).toMatchObject({ archive: digestOf("second"), filesHash: HASH });
  });

  it("takes any content type, and an empty or large body", async () => {
    const url = await newLink();
    const large = Buffer.alloc(15 * 1024 * 1024, 7);
    for (const type of ["text/plain", "application/json", "nonsense", "multipart/form-data", ""]) {
      expect({ type, status: (await put(url, "{", type === "" ? {} : { "Content-Type": type })).status }).toEqual({ type, status: 200 });
    }
    expect((await put(url, "")).status).toBe(200);
    expect((await put(url, large)).status).toBe(200);
    expect(await blobsOf(api())).toContain(digestOf(large.toString("latin1")));
    expect((await put(url, Buffer.alloc(16 * 1024 * 1024 + 1))).status).toBe(413);
  });

  it("is refused when the link is not for it", async () => {
    const url = new URL(await newLink());
    const changed = (name: string, value: string | undefined) => {
      const copy = new URL(url);
      if (value === undefined) copy.searchParams.delete(name);
      else copy.searchParams.set(name, value);
      return copy.href;
    };
    const token = url.searchParams.get("token") ?? "";
    const expires = Number(url.searchParams.get("expires"));
    const path = url.searchParams.get("path") ?? "";
    for (const [name, value, status] of [
      ["path", undefined, 400],
      ["expires", undefined, 400],
      ["token", undefined, 400],
      ["path", "../../etc/passwd", 400],
      ["path", `${path}/../x`, 400],
      ["expires", "soon", 400],
      ["expires", "1e99", 400],
      ["token", "", 403],
      ["token", token.slice(1), 403],
      ["token", token.replace(/^./, (digit) => (digit === "0" ? "1" : "0")), 403],
      ["expires", `${expires + 1}`, 403],
      ["expires", "1", 403],
      ["path", path.replace(HASH, HASH.replace("0", "f")), 403],
    ] as const) {
      const answer = await put(changed(name, value), "x");
      expect({ name, value, status: answer.status, body: await answer.json() }).toMatchObject({
        name,
        value,
        status,
        body: { code: status },
      });
    }
    for (const method of ["GET", "POST", "DELETE", "PATCH"]) expect((await fetch(url, { method })).status).toBe(405);
    expect((await fetch(url, { method: "POST", body: "x" })).status).toBe(405);
    expect(await blobsOf(api())).toEqual([]);
  });

  it("is refused when its link is older than half an hour", async () => {
    const { templateID } = await requestBuild(api(), "web");
    for (const [age, status] of [
      [29, 200],
      [31, 403],
    ] as const) {
      const clock = { now: () => api().store.clock.now() - age * 60_000 };
      await using past = await api().createApi({ ownerId: `past${age}` }, clock);
      const { url } = await past.listen();
      const { body } = await api().call("GET", `/templates/${templateID}/files/${HASH}`, { url });
      const link = new URL(body.url);
      expect((await put(`${api().url}${link.pathname}${link.search}`, "x")).status).toBe(status);
    }
  });

  it("that has no length, or ends early, leaves nothing", async () => {
    const url = new URL(await newLink());
    const send = async (headers: string, body: string) => {
      const socket = connect(Number(url.port), url.hostname);
      socket.write(`PUT ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n${headers}\r\n\r\n${body}`);
      return socket;
    };
    const chunked = await send("Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n");
    expect(String((await once(chunked, "data"))[0])).toMatch(/^HTTP\/1.1 400 /);
    chunked.destroy();
    const short = await send("Content-Length: 1000", "x".repeat(999));
    await waitUntil("it is under way", async () => (await stagedOf(api())).length === 1);
    short.destroy();
    await waitUntil("nothing is left", async () => (await stagedOf(api())).length === 0);
    const long = await send("Content-Length: 1", "xy");
    // What is too much is not a request: the length decides what belongs to the upload.
    expect(String((await once(long, "data"))[0])).toMatch(/^HTTP\/1.1 [24]00 /);
    long.destroy();
    await waitUntil("nothing is under way", async () => (await stagedOf(api())).length === 0);
    for (const blob of await blobsOf(api())) expect(blob).toBe(digestOf("x"));
  });

  it("needs a template of the team, and a hash", async () => {
    const { templateID } = await requestBuild(api(), "web");
    const get = (path: string, options: object = {}) => api().call("GET", path, options);
    for (const hash of ["x", HASH.toUpperCase(), `${HASH}0`, "..%2F..%2Fx"]) {
      expect((await get(`/templates/${templateID}/files/${hash}`)).body).toEqual({ code: 400, message: "Invalid files hash" });
    }
    expect((await get(`/templates/unknown/files/${HASH}`)).status).toBe(404);
    expect((await get(`/templates/${templateID}/files/${HASH}`, { key: api().otherKey })).status).toBe(404);
    const token = await get(`/templates/${templateID}/files/${HASH}`, {
      key: null,
      headers: { Authorization: `Bearer ${api().accessToken}` },
    });
    expect(token.status).toBe(201);
    const forged = await get(`/templates/${templateID}/files/${HASH}`, {
      headers: { "X-Forwarded-Host": "a.example", "X-Forwarded-Proto": "https" },
    });
    expect(forged.body.url).toMatch(/^https:\/\/a\.example\/upload\?/);
  });

  it("is kept while a build needs it, and removed when it was not used for long", async () => {
    const { node } = api();
    node.builds.holds = true;
    const { url } = await linkOf((await requestBuild(api(), "web")).templateID);
    await put(url, "used");
    const ids = await startBuild(api(), "web", { fromImage: "x", steps: [{ type: "COPY", args: ["a", "b"], filesHash: HASH }] });
    await begun(api(), ids);
    await put(url, "new");
    await using old = await api().createApi({ ownerId: "api3", buildCacheDays: 0, timing: { keepBuildLogsMs: 0 } });
    node.builds.say(ids.buildID, "one");
    await waitUntil("it is stored", async () => (await statusOf(api(), ids)).logEntries.length === 1);
    for (let looks = 0; looks < 3; looks += 1) await api().api.cleanUploads();
    expect(new Set(await blobsOf(api()))).toEqual(new Set([digestOf("used"), digestOf("new")]));
    for (let looks = 0; looks < 3; looks += 1) await old.cleanUploads();
    expect(await blobsOf(api())).toEqual([digestOf("used")]);
    expect((await linkOf(ids.templateID)).present).toBe(false);
    expect((await statusOf(api(), ids)).logEntries).toHaveLength(1);
    node.builds.fail(ids.buildID, "x");
    await ended(api(), ids);
    await old.cleanUploads();
    expect(await statusOf(api(), ids)).toMatchObject({ status: "error", logEntries: [] });
    expect(await blobsOf(api())).toEqual([digestOf("used")]);
    await old.cleanUploads();
    expect(await blobsOf(api())).toEqual([]);
  });
});
