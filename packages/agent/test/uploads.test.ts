import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile } from "./agent-under-test.ts";
import { canMount, mountSmallDisk } from "./small-disk.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "skerry-uploads-"));
  chmodSync(folder, 0o755);
  return () => rm(folder, { recursive: true, force: true });
});

const filesUrl = (path: string, more: Record<string, string> = {}) => `/files?${new URLSearchParams({ path, ...more })}`;

function put(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
): Promise<Response> {
  return agent.fetch(filesUrl(path, { username: "nobody" }), {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream", ...headers },
    body,
    ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
  } as RequestInit);
}

/** Handles the extended attributes of the file `f`, which Node.js cannot. */
const attributes = (path: string, statements: string) =>
  execFileSync("python3", ["-c", `import os, sys\nf = sys.argv[1]\n${statements}`, path], { encoding: "utf8" });

describe("POST /files", () => {
  it("stores files larger than its buffers unchanged, from several clients at once, compressed or not", async () => {
    const bytes = randomBytes(3_000_001);
    const gzip = { "Content-Encoding": "gzip" };
    const names = Array.from({ length: 12 }, (_, at) => join(folder, `large-${at}`));
    chmodSync(folder, 0o777);
    const answers = await Promise.all(names.map((path, at) => (at % 2 ? put(path, gzipSync(bytes), gzip) : put(path, bytes))));
    for (const { status } of answers) expect(status).toBe(200);
    for (const path of names) expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  it("writes a raw body and makes its folders, all owned by the user", async () => {
    const path = join(folder, "a/b/c.txt");
    const response = await put(path, "hello");
    expect(await response.json()).toEqual([{ name: "c.txt", path, type: "file" }]);
    expect(readFileSync(path, "utf8")).toBe("hello");
    for (const [file, mode] of [
      [path, 0o644],
      [join(folder, "a"), 0o755],
      [join(folder, "a/b"), 0o755],
    ] as const) {
      const stats = statSync(file);
      expect({ uid: stats.uid, gid: stats.gid, mode: stats.mode & 0o777 }).toEqual({ uid: 65534, gid: 65534, mode });
    }
    expect(statSync(folder).uid).toBe(0);
  });

  it("keeps the mode of an existing file, follows links and truncates", async () => {
    const path = join(folder, "x");
    writeFileSync(path, "something longer");
    chmodSync(path, 0o600);
    symlinkSync("x", join(folder, "link"));
    await put(join(folder, "link"), "short");
    expect(readFileSync(path, "utf8")).toBe("short");
    expect({ mode: statSync(path).mode & 0o777, uid: statSync(path).uid }).toEqual({ mode: 0o600, uid: 65534 });
  });

  it("accepts a body of unknown length, also with gzip", async () => {
    const content = Buffer.alloc(3_000_000, "abc");
    const stream = (bytes: Uint8Array) => new Blob([new Uint8Array(bytes)]).stream();
    expect((await put(join(folder, "plain"), stream(content))).status).toBe(200);
    expect((await put(join(folder, "zipped"), stream(gzipSync(content)), { "Content-Encoding": "gzip" })).status).toBe(200);
    const members = Buffer.concat([gzipSync("one "), gzipSync("two")]);
    expect((await put(join(folder, "members"), new Uint8Array(members), { "Content-Encoding": "GZIP" })).status).toBe(200);
    expect(readFileSync(join(folder, "plain")).equals(content)).toBe(true);
    expect(readFileSync(join(folder, "zipped")).equals(content)).toBe(true);
    expect(readFileSync(join(folder, "members"), "utf8")).toBe("one two");
  });

  it.each([
    [{ "Content-Type": "application/octet-stream; x=y" }, "plain"],
    [{ "Content-Type": "Application/Octet-Stream", "Content-Encoding": "identity" }, "plain"],
    [{ "Content-Encoding": "gzip;q=1.0" }, gzipSync("plain")],
  ])("takes a body with %j", async (headers, body) => {
    const path = join(folder, "taken");
    expect((await put(path, new Uint8Array(Buffer.from(body)), headers as Record<string, string>)).status).toBe(200);
    expect(readFileSync(path, "utf8")).toBe("plain");
  });

  it("decompresses a whole form", async () => {
    const path = join(folder, "packed");
    const form = `--b\r\nContent-Disposition: form-data; name="file"; filename="${path}"\r\n\r\ncontent\r\n--b--\r\n`;
    const headers = { "Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": "gzip" };
    const response = await agent.fetch("/files", { method: "POST", headers, body: new Uint8Array(gzipSync(form)) });
    expect(await response.json()).toEqual([{ name: "packed", path, type: "file" }]);
    expect(readFileSync(path, "utf8")).toBe("content");
  });

  it("writes the files of a form under their full names, and one field under the path of the query", async () => {
    const form = new FormData();
    form.append("file", new Blob(["one"]), join(folder, "dir/文.txt"));
    form.append("note", "not a file");
    form.append("file", new Blob(["two"]), join(folder, 'q"uote'));
    const response = await agent.fetch("/files?username=nobody", { method: "POST", body: form });
    expect(((await response.json()) as { name: string }[]).map(({ name }) => name)).toEqual(["文.txt", "q%22uote"]);
    expect(readFileSync(join(folder, "dir/文.txt"), "utf8")).toBe("one");

    const field = new FormData();
    field.append("file", "text of a field");
    const path = join(folder, "field");
    expect(await (await agent.fetch(filesUrl(path), { method: "POST", body: field })).json()).toEqual([
      { name: "field", path, type: "file" },
    ]);
    expect(readFileSync(path, "utf8")).toBe("text of a field");
  });

  it("refuses forms that name no file or one twice, and says what was written", async () => {
    const [first, other] = [join(folder, "first"), join(folder, "other")];
    const send = async (query: string, ...names: string[]) => {
      const form = new FormData();
      for (const [index, name] of names.entries()) form.append("file", new Blob([`${index}`]), name);
      return (await agent.fetch(`/files?${query}`, { method: "POST", body: form })).json();
    };
    const refused = (message: unknown) => ({ code: 400, message });
    const twice = `you cannot upload multiple files to the same path '${first}' in one upload request, only the first specified file was uploaded`;
    expect(await send("username=nobody", first, first)).toEqual(refused(twice));
    expect(await send("username=nobody", first, other, first)).toEqual(refused(expect.stringMatching(`^${twice}.*${other}`)));
    expect([first, other].map((path) => readFileSync(path, "utf8"))).toEqual(["0", "1"]);
    expect(await send(`path=${first}`, "a", "b")).toEqual(refused(twice));
    // An empty path means the home directory.
    expect(await send("path=", first)).toEqual(refused("path is a directory: /root"));
    const nameless = new FormData();
    nameless.append("file", "x");
    expect(await (await agent.fetch("/files", { method: "POST", body: nameless })).json()).toMatchObject({
      code: 400,
      message: "error getting multipart custom part file name: filename not found in Content-Disposition header",
    });
    expect(await (await agent.fetch("/files", { method: "POST", body: new FormData() })).json()).toEqual([]);
  });

  it.each([
    [
      "a body without a path",
      "/files",
      { "Content-Type": "application/octet-stream" },
      400,
      "path query parameter is required for raw body upload",
    ],
    [
      "another type",
      "/files?path=/tmp/x",
      { "Content-Type": "text/plain" },
      400,
      "unsupported content type: text/plain, expected multipart/form-data or application/octet-stream",
    ],
    [
      "another encoding",
      "/files?path=/tmp/x",
      { "Content-Type": "application/octet-stream", "Content-Encoding": "br" },
      400,
      "error decompressing request body: unsupported Content-Encoding: br, supported: [gzip]",
    ],
    [
      "the encoding before the user",
      "/files?path=/tmp/x&username=ghost",
      { "Content-Type": "application/octet-stream", "Content-Encoding": "br" },
      400,
      "error decompressing request body: unsupported Content-Encoding: br, supported: [gzip]",
    ],
    [
      "the user before the metadata",
      "/files?path=/tmp/x&username=ghost",
      { "Content-Type": "application/octet-stream", "X-Metadata-A": "é" },
      401,
      "error looking up user 'ghost': user: unknown user ghost",
    ],
    [
      "the metadata before the type",
      "/files?path=/tmp/x",
      { "Content-Type": "text/plain", "X-Metadata-A": "é" },
      400,
      "invalid metadata: ",
    ],
    ["a form without boundary", "/files", { "Content-Type": "multipart/form-data" }, 500, "error parsing multipart form: "],
    ["broken framing", "/files", { "Content-Type": "multipart/form-data; boundary=b" }, 500, "error reading form: "],
    [
      "a NUL character",
      "/files?path=%2ftmp%2f%00",
      { "Content-Type": "application/octet-stream" },
      400,
      "error expanding and resolving path '/tmp/\0': a path can't contain a NUL character",
    ],
    ["a directory", "/files?path=/tmp", { "Content-Type": "application/octet-stream" }, 400, "path is a directory: /tmp"],
    [
      "a parent that is a file",
      "/files?path=/etc/passwd/x",
      { "Content-Type": "application/octet-stream" },
      500,
      "error ensuring directories: path is a file: /etc/passwd",
    ],
  ])("refuses %s", async (_, path, headers, status, message) => {
    const response = await agent.fetch(path, { method: "POST", headers: headers as Record<string, string>, body: "content" });
    const body = (await response.json()) as { code: number; message: string };
    expect([response.status, body.code, body.message.slice(0, message.length)]).toEqual([status, status, message]);
  });

  it("reports truncated gzip data and a truncated part", async () => {
    const cut = gzipSync(Buffer.alloc(10_000, "abcdefg")).subarray(0, 20);
    expect((await put(join(folder, "cut"), new Uint8Array(cut), { "Content-Encoding": "gzip" })).status).toBe(500);
    const body = `--b\r\nContent-Disposition: form-data; name="file"; filename="${folder}/part"\r\n\r\nabc`;
    const response = await agent.fetch("/files", { method: "POST", headers: { "Content-Type": "multipart/form-data; boundary=b" }, body });
    expect(await response.json()).toEqual({ code: 500, message: "error writing file: unexpected EOF" });
  });

  it("reports a form that is truncated in a part that is no file", async () => {
    const body = `--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nabc`;
    const response = await agent.fetch("/files", { method: "POST", headers: { "Content-Type": "multipart/form-data; boundary=b" }, body });
    expect(await response.json()).toEqual({ code: 500, message: "error reading form: unexpected EOF" });
  });

  it.each([
    ["text", "no gzip"],
    ["nothing", ""],
    ["half a header", new Uint8Array([0x1f, 0x8b, 8])],
  ])("refuses %s that is said to be gzip before it touches anything", async (_, content) => {
    const path = join(folder, "kept");
    await put(path, "before");
    const refused = await put(path, content, { "Content-Encoding": "gzip" });
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as { message: string }).message).toMatch(/^error decompressing request body: /);
    expect(readFileSync(path, "utf8")).toBe("before");
    expect((await put(join(folder, "never/made"), content, { "Content-Encoding": "gzip" })).status).toBe(400);
    expect(existsSync(join(folder, "never"))).toBe(false);
  });

  it("lets many uploads create one folder at the same time", async () => {
    const paths = Array.from({ length: 20 }, (_, index) => join(folder, `deep/er/still/${index}`));
    const statuses = await Promise.all(paths.map(async (path) => (await put(path, path)).status));
    expect(new Set(statuses)).toEqual(new Set([200]));
    for (const path of paths) expect(readFileSync(path, "utf8")).toBe(path);
  });

  const metadataOf = (path: string) => agent.filesystem.stat({ path }).then(({ entry }) => entry?.metadata);

  it("stores metadata with the file, replaces all of it, and leaves other attributes alone", async () => {
    const path = join(folder, "meta");
    const store = (headers: Record<string, string>) => put(path, "x", headers).then((response) => response.json());
    const entry = () => metadataOf(path);
    writeFileSync(path, "");
    attributes(path, 'os.setxattr(f, "user.other", b"x")');
    expect(await store({ "X-Metadata-Colour": "red", "X-Metadata-Empty": "" })).toEqual([
      { name: "meta", path, type: "file", metadata: { colour: "red", empty: "" } },
    ]);
    expect(await entry()).toEqual({ colour: "red", empty: "" });
    expect(await store({ "X-Metadata-Size": "L" })).toMatchObject([{ metadata: { size: "L" } }]);
    expect(await entry()).toEqual({ size: "L" });
    expect(await store({})).toEqual([{ name: "meta", path, type: "file" }]);
    expect(await entry()).toEqual({});
    expect(attributes(path, 'print([n for n in os.listxattr(f) if n.startswith("user.")], os.getxattr(f, "user.other"))')).toBe(
      "['user.other'] b'x'\n",
    );
  });

  it("shows metadata that other programs have set, if it is text, and clears it", async () => {
    const path = join(folder, "foreign");
    writeFileSync(path, "");
    attributes(path, 'os.setxattr(f, "user.e2b.set", "ü".encode()); os.setxattr(f, "user.e2b.bytes", b"\\xff")');
    expect(await metadataOf(path)).toEqual({ set: "ü" });
    await put(path, "x");
    expect(await metadataOf(path)).toEqual({});
  });

  it("gives each file of a form the metadata, which moves with it and shows through links", async () => {
    const form = new FormData();
    for (const name of ["a", "b"]) form.append("file", new Blob([name]), join(folder, name));
    const metadata = { colour: "red" };
    const response = await agent.fetch("/files", { method: "POST", headers: { "X-Metadata-Colour": "red" }, body: form });
    expect(await response.json()).toMatchObject([
      { name: "a", metadata },
      { name: "b", metadata },
    ]);
    await agent.filesystem.move({ source: join(folder, "a"), destination: join(folder, "c") });
    symlinkSync("c", join(folder, "link"));
    for (const name of ["b", "c", "link"]) expect(await metadataOf(join(folder, name))).toEqual(metadata);
  });

  it("refuses metadata that cannot be stored before it changes any file", async () => {
    const path = join(folder, "new/meta");
    const response = await put(path, "x", { "X-Metadata-A": "v".repeat(5000) });
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 400,
      body: { code: 400, message: expect.stringMatching(/^invalid metadata: /) },
    });
    expect(existsSync(join(folder, "new"))).toBe(false);
  });

  it.runIf(canMount()).each(["application/octet-stream", "multipart/form-data; boundary=b"])(
    "says that the disk is full while a %s still arrives",
    async (type) => {
      using _disk = mountSmallDisk(join(folder, "early"));
      const socket = connect({ host: "127.0.0.1", port: agent.port });
      try {
        const path = join(folder, "early/big");
        const head = `POST /files?path=${encodeURIComponent(path)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: ${type}\r\n`;
        socket.write(`${head}Content-Length: 20000000\r\n\r\n`);
        if (type.startsWith("multipart")) socket.write('--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n');
        let received = "";
        let broken: Error | undefined;
        socket.on("data", (chunk) => (received += chunk)).on("error", (error) => (broken = error));
        for (let sent = 0; sent < 18; sent += 1) await new Promise((resolve) => socket.write(Buffer.alloc(1_000_000), resolve));
        await expect.poll(() => received).toContain("not enough disk space available");
        expect(received).toMatch(/^HTTP\/1\.1 507 /);
        expect(broken).toBeUndefined();
      } finally {
        socket.destroy();
      }
    },
  );

  it.runIf(canMount())("says that the disk is full, and leaves what was written", async () => {
    using _disk = mountSmallDisk(join(folder, "small"));
    const path = join(folder, "small/big");
    const full = async (body: Uint8Array<ArrayBuffer> | ReadableStream) => {
      const response = await put(path, body);
      expect(statSync(path).size).toBeGreaterThan(0);
      return { status: response.status, body: await response.json() };
    };
    expect(await full(new Uint8Array(200_000))).toEqual({
      status: 507,
      body: { code: 507, message: "attempted to write 200000 bytes: not enough disk space available" },
    });
    expect(await full(new Blob([new Uint8Array(200_000)]).stream())).toEqual({
      status: 507,
      body: { code: 507, message: "not enough disk space available" },
    });
  });

  it.runIf(canMount())("says that the disk takes no more files, metadata or folders", async () => {
    // Since Linux 6.6 a tmpfs counts metadata towards its limit on files. Before, it stores no metadata.
    const [major = 0, minor = 0] = release().split(".").map(Number);
    const keepsMetadata = major > 6 || (major === 6 && minor >= 6);
    using _disk = mountSmallDisk(join(folder, "small"), "nr_inodes=4");
    const answer = async (name: string, headers = {}) => {
      const response = await put(join(folder, "small", name), "x", headers);
      return { status: response.status, body: response.ok ? undefined : await response.json() };
    };
    const refused = (status: number, message: string) => ({
      status,
      body: { code: status, message: expect.stringMatching(`^${message}: `) },
    });
    const labelled = await answer("labelled", { "X-Metadata-A": "v".repeat(4000) });
    expect(labelled).toEqual(keepsMetadata ? refused(507, "not enough space for file metadata") : { status: 200 });
    for (const name of ["a", "b"]) expect(await answer(name)).toEqual({ status: 200 });
    expect(await answer("one-more")).toEqual(refused(507, "not enough inodes available"));
    expect(await answer("folder/file")).toEqual(refused(500, "error ensuring directories"));
  });
});
