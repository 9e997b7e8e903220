import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile, descriptorsOf } from "./agent-under-test.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "skerry-downloads-"));
  chmodSync(folder, 0o755);
  return () => rm(folder, { recursive: true, force: true });
});

interface RawResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** A request without the headers and the decoding of fetch. */
function raw(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request(agent.url + path, { method, headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) }));
      incoming.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

const filesUrl = (path: string, more: Record<string, string> = {}) => `/files?${new URLSearchParams({ path, ...more })}`;

describe("GET /files", () => {
  const MODIFIED = "Tue, 14 Nov 2023 22:13:20 GMT";
  const UNCHANGED = { "content-disposition": "inline; filename=f.txt", "last-modified": MODIFIED, vary: "Accept-Encoding" };

  it("sends a file with its headers", async () => {
    const path = join(folder, "hello.bin");
    writeFileSync(path, "hello\0world");
    utimesSync(path, 1_700_000_000, 1_700_000_000);
    const response = await raw(filesUrl(path));
    expect(response.status).toBe(200);
    expect(response.body.toString()).toBe("hello\0world");
    expect(response.headers).toMatchObject({
      "accept-ranges": "bytes",
      "content-length": "11",
      "content-type": "application/octet-stream",
      "content-disposition": "inline; filename=hello.bin",
      "last-modified": MODIFIED,
      vary: "Accept-Encoding",
    });
    expect(response.headers.etag).toBeUndefined();
    // Signatures are checked only when an access token is set.
    expect((await raw(filesUrl(path, { signature: "v1_x" }))).status).toBe(200);
  });

  it.each([
    ["page.json", "\x89PNG\r\n\x1a\n", "application/json", "application/json"],
    ["a.txt", "\0", "text/plain; charset=utf-8", "text/plain; charset=utf-8"],
    ["html", "<html><body>", "text/html; charset=utf-8", "application/octet-stream"],
    ["text", "just words", "text/plain; charset=utf-8", "application/octet-stream"],
    ["image", "\x89PNG\r\n\x1a\n", "image/png", "application/octet-stream"],
  ])("tells the type of %s by its extension, else by its content where that is sent as it is", async (name, content, plain, packed) => {
    const path = join(folder, name);
    writeFileSync(path, content, "latin1");
    expect((await raw(filesUrl(path))).headers["content-type"]).toBe(plain);
    const { headers } = await raw(filesUrl(path), { "Accept-Encoding": "gzip" });
    expect(headers).toMatchObject({ "content-type": packed, "content-encoding": "gzip" });
    expect(headers).not.toHaveProperty("last-modified");
  });

  it("compresses when the client prefers that", async () => {
    const path = join(folder, "a.txt");
    writeFileSync(path, "x".repeat(10_000));
    const response = await raw(filesUrl(path), { "Accept-Encoding": "gzip, deflate, br" });
    expect(response.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(response.headers["accept-ranges"]).toBeUndefined();
    expect(gunzipSync(response.body).toString()).toBe("x".repeat(10_000));
    expect(await (await agent.fetch(filesUrl(path))).text()).toBe("x".repeat(10_000));
  });

  it("sends empty files in both encodings", async () => {
    const path = join(folder, "empty");
    writeFileSync(path, "");
    expect(await raw(filesUrl(path))).toMatchObject({
      status: 200,
      headers: { "content-length": "0", "content-type": "text/plain; charset=utf-8" },
    });
    expect(gunzipSync((await raw(filesUrl(path), { "Accept-Encoding": "gzip" })).body).length).toBe(0);
  });

  it.each([
    [{ Range: "bytes=0-4" }, 206, "hello", { "content-range": "bytes 0-4/11" }],
    [{ Range: "bytes=-3" }, 206, "rld", { "content-range": "bytes 8-10/11" }],
    [{ Range: "bytes=20-" }, 416, "invalid range: failed to overlap\n", { "content-range": "bytes */11" }],
    [{ Range: "bytes=0-4", "Accept-Encoding": "gzip" }, 206, "hello", {}],
    [{ Range: "bytes=0-4", "If-Range": MODIFIED }, 206, "hello", { "content-range": "bytes 0-4/11" }],
    [{ Range: "bytes=0-4", "If-Range": "Tue, 14 Nov 2023 22:13:21 GMT" }, 200, "hello world", { "content-length": "11" }],
    [
      { Range: "bytes=0-4", "Accept-Encoding": "gzip;q=1,*;q=0" },
      406,
      '{"code":406,"message":"identity encoding not acceptable for Range or conditional request"}\n',
      { vary: "Accept-Encoding" },
    ],
    [
      { "Accept-Encoding": "br, identity;q=0" },
      406,
      '{"code":406,"message":"error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]"}\n',
      { vary: "Origin" },
    ],
    [{ "If-None-Match": "*" }, 304, "", UNCHANGED],
    [{ "If-Modified-Since": MODIFIED }, 304, "", UNCHANGED],
    [{ "If-Modified-Since": "Tue, 14 Nov 2023 22:13:19 GMT" }, 200, "hello world", {}],
    [{ "If-Unmodified-Since": "Tue, 14 Nov 2023 22:13:19 GMT" }, 412, "", {}],
  ])("answers %j with %i", async (headers, status, body, expected) => {
    const path = join(folder, "f.txt");
    writeFileSync(path, "hello world");
    utimesSync(path, 1_700_000_000, 1_700_000_000);
    const response = await raw(filesUrl(path), headers as Record<string, string>);
    expect({ status: response.status, body: response.body.toString() }).toEqual({ status, body });
    expect(response.headers).toMatchObject(expected);
  });

  it("sends several ranges as multipart/byteranges", async () => {
    const path = join(folder, "f.txt");
    writeFileSync(path, "hello world");
    const response = await raw(filesUrl(path), { Range: "bytes=0-1,9-10" });
    expect(response.status).toBe(206);
    const boundary = /^multipart\/byteranges; boundary=(\w+)$/.exec(String(response.headers["content-type"]))?.[1];
    const part = (range: string, text: string) =>
      `--${boundary}\r\nContent-Range: bytes ${range}/11\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n`;
    expect(response.body.toString()).toBe(`${part("0-1", "he")}${part("9-10", "ld")}--${boundary}--\r\n`);
    expect(response.headers["content-length"]).toBe(String(response.body.length));
  });

  it("sends files larger than its buffers unchanged, whole and in ranges, to several clients at once", async () => {
    const path = join(folder, "large");
    const bytes = randomBytes(3_000_001);
    writeFileSync(path, bytes);
    const answers = await Promise.all(Array.from({ length: 12 }).map(() => raw(filesUrl(path))));
    for (const { body } of answers) expect(body.equals(bytes)).toBe(true);
    const part = await raw(filesUrl(path), { Range: "bytes=99-2000000" });
    expect(part.body.equals(bytes.subarray(99, 2_000_001))).toBe(true);
    const parts = await raw(filesUrl(path), { Range: "bytes=7-900000,1000000-" });
    for (const piece of [bytes.subarray(7, 900_001), bytes.subarray(1_000_000)]) expect(parts.body.includes(piece)).toBe(true);
    expect(parts.headers["content-length"]).toBe(String(parts.body.length));
  });

  it("breaks the connection when the file becomes shorter, and closes the file when the client disconnects", async () => {
    const path = join(folder, "shrinking");
    writeFileSync(path, "");
    // More than all buffers on the way can hold.
    truncateSync(path, 256 * 1024 * 1024);
    const opened = () => descriptorsOf(agent.pid).filter((target) => target === path);
    const begin = async () => {
      const outgoing = request(agent.url + filesUrl(path), { agent: false }).end();
      const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
      expect(opened()).toHaveLength(1);
      return { outgoing, incoming };
    };
    const left = await begin();
    left.outgoing.on("error", () => {}).destroy();
    await expect.poll(opened).toEqual([]);

    const { incoming } = await begin();
    truncateSync(path, 0);
    await expect(incoming.resume().toArray()).rejects.toThrow("aborted");
    await expect.poll(opened).toEqual([]);
  });

  it("reads files of the kernel to their end, again for each request", async () => {
    const read = async () => (await raw(filesUrl("/proc/sys/kernel/random/uuid"))).body.toString();
    const first = await read();
    expect(first).toMatch(/^[0-9a-f-]{36}\n$/);
    expect(await read()).not.toBe(first);
  });

  it("does not hang on a FIFO", async () => {
    execFileSync("mkfifo", [join(folder, "fifo")]);
    expect((await raw(filesUrl(join(folder, "fifo")))).status).toBe(200);
  });

  it.each([
    ["what is missing", { path: "/nope/nope" }, {}, 404, "path '/nope/nope' does not exist"],
    ["a NUL character", { path: "/etc/\0" }, {}, 400, "error expanding and resolving path '/etc/\0': a path can't contain a NUL character"],
    ["a directory", { path: "/etc" }, {}, 400, "path '/etc' is a directory"],
    ["no path: the home directory", {}, {}, 400, "path '/root' is a directory"],
    ["nobody", { path: "/etc", username: "ghost" }, {}, 401, "error looking up user 'ghost': user: unknown user ghost"],
    ["an empty name", { path: "/etc/passwd", username: "" }, {}, 401, "error looking up user '': user: unknown user "],
    ["another's home", { path: "~other/x" }, {}, 400, expect.stringContaining("cannot expand user-specific home dir")],
    ["a file as folder", { path: "/etc/passwd/x" }, {}, 500, expect.stringMatching(/^error checking if path exists /)],
    [
      "what takes no encoding that there is",
      { path: "/etc/passwd" },
      { "Accept-Encoding": "br, identity;q=0" },
      406,
      "error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]",
    ],
    ["the user before the path", { path: "~other/x", username: "ghost" }, {}, 401, expect.stringContaining("ghost")],
    ["a missing path before the encoding", { path: "/nope" }, { "Accept-Encoding": "*;q=0" }, 404, "path '/nope' does not exist"],
    ["a directory before the encoding", { path: "/etc" }, { "Accept-Encoding": "*;q=0" }, 400, "path '/etc' is a directory"],
  ])("refuses %s, in the words that clients compare", async (_, query, headers, status, message) => {
    const response = await raw(`/files?${new URLSearchParams(query as Record<string, string>)}`, headers as Record<string, string>);
    expect({ status: response.status, body: JSON.parse(response.body.toString()) as unknown }).toEqual({
      status,
      body: { code: status, message },
    });
  });

  it("sends errors as one line of JSON, and errors about parameters as text", async () => {
    const { headers, body } = await raw(filesUrl("/nope"));
    expect(headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "x-content-type-options": "nosniff",
      vary: "Origin",
    });
    expect(body.toString()).toBe(`{"code":404,"message":"path '/nope' does not exist"}\n`);
    for (const name of ["path", "username"]) {
      const twice = await raw(`${filesUrl("/etc/passwd", { username: "root" })}&${name}=root`);
      expect({ status: twice.status, type: twice.headers["content-type"], text: twice.body.toString() }).toEqual({
        status: 400,
        type: "text/plain; charset=utf-8",
        text: expect.stringMatching(`^Invalid format for parameter ${name}: `),
      });
    }
    expect((await raw(filesUrl("/etc/passwd"), {}, "HEAD")).status).toBe(405);
  });

  it("cannot open a socket", async () => {
    const path = join(folder, "socket");
    const server = createServer().listen(path);
    await once(server, "listening");
    const { status, body } = await raw(filesUrl(path));
    server.close();
    expect({ status, body: JSON.parse(body.toString()) as unknown }).toEqual({
      status: 500,
      body: { code: 500, message: expect.stringMatching(`^error opening file '${path}'`) },
    });
  });
});
