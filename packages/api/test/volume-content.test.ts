// The content API of volumes: what it answers, whom it admits, and that it streams.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { Secret } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Volume, VolumeError, VolumeNotFoundError, VolumePathNotFoundError } from "e2b";
import { expect, it } from "vitest";
import { VolumeTokens } from "../src/volumes/volume-tokens.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { TeamCalls } from "./team-calls.ts";

interface Request {
  readonly method?: string;
  readonly token?: string | null;
  readonly body?: RequestInit["body"];
  readonly headers?: Record<string, string>;
}

describeOnEachDatabase("the content of volumes", { inSample: "sqlite", timing: { uploadIdleMs: 60_000 } }, (api) => {
  const connection = () => ({ apiUrl: api().url, apiKey: api().apiKey, retries: 0 });
  const at = () => ({ apiUrl: api().url });
  const teams = new TeamCalls(api);

  const create = async (sizeMB?: number) => {
    const answer = await api().call("POST", "/volumes", { body: { name: `v-${randomUUID()}`, ...(sizeMB ? { sizeMB } : {}) } });
    expect(answer.status, answer.text).toBe(201);
    const { volumeID: id, token } = answer.body as { volumeID: string; token: string };
    const call = async (
      what: string,
      query: Record<string, unknown>,
      { method = "GET", token: other = token, body, headers = {} }: Request = {},
    ) => {
      const text = new URLSearchParams(Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]));
      const response = await fetch(`${api().url}/volumecontent/${id}/${what}?${text}`, {
        method,
        headers: { ...(other === null ? {} : { Authorization: `Bearer ${other}` }), ...headers },
        ...(body === undefined ? {} : { body, duplex: "half" }),
      } as RequestInit);
      const bytes = Buffer.from(await response.arrayBuffer());
      const isJson = response.headers.get("content-type")?.includes("json") ?? false;
      return { status: response.status, headers: response.headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : undefined };
    };
    return { id, token, call, files: () => api().node.volumes.held.get(id)?.files };
  };

  it("is what the official client expects", async () => {
    const volume = await Volume.create("sdk", connection());
    expect(await Volume.list(connection())).toEqual([{ volumeId: volume.volumeId, name: "sdk" }]);
    expect(await volume.makeDir("/a", { ...at(), mode: 0o700, uid: 5, gid: 6 })).toMatchObject({
      type: "directory",
      mode: 0o700,
      uid: 5,
      gid: 6,
    });
    const written = await volume.writeFile("/a/text", "héllo", at());
    expect(written).toMatchObject({ name: "text", path: "/a/text", type: "file", size: 6 });
    expect(written.mtime).toBeInstanceOf(Date);
    expect(await volume.readFile("/a/text", at())).toBe("héllo");
    expect(await volume.readFile("/a/text", { ...at(), format: "bytes" })).toEqual(new TextEncoder().encode("héllo"));
    const stream = await volume.readFile("/a/text", { ...at(), format: "stream" });
    expect(await new Response(stream).text()).toBe("héllo");
    await expect(volume.writeFile("/a/text", "again", at())).rejects.toThrow(/^409: /);
    await volume.writeFile("/a/text", new Blob(["streamed"]).stream(), { ...at(), force: true });
    expect(await volume.readFile("/a/text", at())).toBe("streamed");
    await volume.writeFile("/empty", "", at());
    expect(await volume.readFile("/empty", at())).toBe("");
    expect(await volume.updateMetadata("/a/text", { mode: 0o600 }, at())).toMatchObject({ mode: 0o600 });
    expect((await volume.list("/", { ...at(), depth: 2 })).map(({ path }) => path).sort()).toEqual(["/a", "/a/text", "/empty"]);
    expect(await volume.exists("/a/text", at())).toBe(true);
    expect(await volume.exists("/a/text/below", at())).toBe(false);
    await volume.remove("/a", at());
    expect(await volume.exists("/a", at())).toBe(false);
    await expect(volume.readFile("/a", at())).rejects.toBeInstanceOf(VolumePathNotFoundError);
    const again = await Volume.connect(volume.volumeId, connection());
    expect(await again.exists("/empty", at())).toBe(true);
    await expect(Volume.create("sdk", connection())).rejects.toBeInstanceOf(VolumeError);
    expect(await Volume.destroy(volume.volumeId, connection())).toBe(true);
    expect(await Volume.destroy(volume.volumeId, connection())).toBe(false);
    await expect(Volume.connect(volume.volumeId, connection())).rejects.toBeInstanceOf(VolumeNotFoundError);
  });

  it("says what went wrong with a text as code", async () => {
    const { call } = await create(8);
    await call("file", { path: "/f" }, { method: "PUT", body: "x" });
    await call("dir", { path: "/d" }, { method: "POST" });
    const put = { method: "PUT", body: "x" };
    const refused: [Awaited<ReturnType<typeof call>>, number, string][] = [
      [await call("path", { path: "/gone" }), 404, "path_not_found"],
      [await call("path", { path: "/f/below" }), 404, "path_not_found"],
      [await call("path", { path: "/" }, { method: "DELETE" }), 404, "path_not_found"],
      [await call("path", { path: "/../x" }), 400, "invalid_path"],
      [await call("path", { path: "" }), 400, "invalid_argument"],
      [await call("path", {}), 400, "invalid_argument"],
      [await call("dir", { path: "/f" }), 409, "not_a_directory"],
      [await call("dir", { path: "/", depth: 0 }), 400, "invalid_argument"],
      [await call("dir", { path: "/d" }, { method: "POST" }), 409, "path_exists"],
      [await call("dir", { path: "/x/y" }, { method: "POST" }), 404, "path_not_found"],
      [await call("file", { path: "/d" }), 409, "is_a_directory"],
      [await call("file", { path: "/f" }, put), 409, "path_exists"],
      [await call("file", { path: "/x/f" }, put), 404, "path_not_found"],
      [await call("file", { path: "/m", mode: 0o10000 }, put), 400, "invalid_argument"],
      [await call("file", { path: "/m", uid: -1 }, put), 400, "invalid_argument"],
      [await call("file", { path: "/m", uid: 2 ** 32 }, put), 400, "invalid_argument"],
      [await call("file", { path: "/m", force: "yes" }, put), 400, "invalid_argument"],
      [await call("file", { path: "/z" }, { ...put, headers: { "Content-Encoding": "gzip" } }), 400, "invalid_argument"],
      [await call("file", { path: "/full" }, { ...put, body: Buffer.alloc(9 * 1024 * 1024) }), 507, "volume_full"],
      [
        await call("path", { path: "/f" }, { method: "PATCH", body: "{", headers: { "Content-Type": "application/json" } }),
        400,
        "invalid_argument",
      ],
      [await call("path", { path: "/f" }, { method: "PATCH" }), 400, "invalid_argument"],
    ];
    for (const [answer, status, code] of refused) {
      expect({ status: answer.status, body: answer.body }).toEqual({ status, body: { code, message: expect.any(String) } });
    }
  });

  it("reads parts of files", async () => {
    const { call } = await create();
    await call("file", { path: "/f" }, { method: "PUT", body: "0123456789" });
    const read = async (range: string) => {
      const answer = await call("file", { path: "/f" }, { headers: { Range: range } });
      return [answer.status, answer.bytes.toString(), answer.headers.get("content-range")];
    };
    expect(await read("bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await read("bytes=7-")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await read("bytes=-3")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await read("bytes=5-99")).toEqual([206, "56789", "bytes 5-9/10"]);
    for (const whole of ["bytes=0-1,3-4", "lines=1-2", "bytes=", "bytes=4-2"]) expect(await read(whole)).toEqual([200, "0123456789", null]);
    const outside = await call("file", { path: "/f" }, { headers: { Range: "bytes=10-" } });
    expect(outside).toMatchObject({ status: 416, body: { code: "range_not_satisfiable" } });
    expect(outside.headers.get("content-range")).toBe("bytes */10");
    const { headers } = await call("file", { path: "/f" });
    expect(headers.get("accept-ranges")).toBe("bytes");
    expect(headers.get("content-length")).toBe("10");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("admits only tokens of the volume, while they are valid and their team may", async () => {
    const [volume, other] = [await create(), await create()];
    const path = { path: "/" };
    const make = (volumeId: string, access: "read" | "write", lifetimeMs: number) =>
      new VolumeTokens({ tokenSeed: new Secret("seed"), clock: api().store.clock, lifetimeMs }).make(volumeId, access);
    const valid = make(volume.id, "write", 60_000);
    expect((await volume.call("path", path, { token: valid })).status).toBe(200);
    const forged = [
      null,
      "",
      "x",
      other.token,
      api().apiKey,
      valid.replace("skv_w", "skv_r"),
      `${valid}0`,
      make(volume.id, "write", -1_000),
    ];
    forged.push(valid.replace(/_\d+_/, (part) => `_${Number(part.slice(1, -1)) + 1}_`));
    for (const token of forged) {
      for (const method of ["GET", "DELETE"]) {
        const answer = await volume.call("path", path, { token, method });
        expect({ token, status: answer.status, code: answer.body?.code }).toEqual({ token, status: 401, code: "unauthenticated" });
      }
    }
    const reader = await teams.key({ scopes: ["volumes:read"] });
    const { token } = (await api().call("GET", `/volumes/${volume.id}`, { key: reader })).body;
    expect((await volume.call("dir", path, { token })).status).toBe(200);
    for (const [what, method] of [
      ["file", "PUT"],
      ["dir", "POST"],
      ["path", "PATCH"],
      ["path", "DELETE"],
    ] as const) {
      const answer = await volume.call(what, { path: "/new" }, { token, method });
      expect({ what, status: answer.status, code: answer.body?.code }).toEqual({ what, status: 403, code: "forbidden" });
    }
    const operator = { key: null, headers: { "X-Admin-Token": api().adminToken } };
    const stand = (standing: string) => api().call("PUT", `/admin/teams/${api().teamId}/standing`, { ...operator, body: { standing } });
    expect((await stand("blocked")).status).toBeLessThan(300);
    expect((await volume.call("path", path)).status).toBe(200);
    expect((await volume.call("file", { path: "/f" }, { method: "PUT", body: "x" })).body).toMatchObject({ message: "team is blocked" });
    expect((await volume.call("path", { path: "/gone" }, { method: "DELETE" })).status).toBe(404);
    await stand("banned");
    expect((await volume.call("path", path)).status).toBe(403);
    await stand("active");
    await api().call("DELETE", `/volumes/${volume.id}`);
    expect((await volume.call("path", path)).body).toMatchObject({ code: "volume_not_found" });
  });

  it("streams uploads with backpressure, and keeps nothing of one that is cut off", async () => {
    const { call, files, id, token } = await create();
    const held = Promise.withResolvers<void>();
    api().node.volumes.hold = held.promise;
    const { hostname, port } = new URL(api().url);
    const socket = connect(Number(port), hostname);
    const head = `PUT /volumecontent/${id}/file?path=/cut HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 1073741824\r\n\r\n`;
    socket.write(head);
    const piece = Buffer.alloc(256 * 1024);
    let sent = 0;
    while (socket.write(piece) || socket.writableLength < 32 * 1024 * 1024) sent += piece.length;
    // Nobody reads on, so the rest waits in the client: the buffers on the way take a few MiB.
    await waitUntil("the upload has begun", () => socket.bytesWritten > head.length);
    expect(socket.writableLength).toBeGreaterThan(sent / 2);
    socket.destroy();
    api().node.volumes.hold = undefined;
    held.resolve();
    const large = Buffer.alloc(3 * 1024 * 1024, "abc");
    expect((await call("file", { path: "/large" }, { method: "PUT", body: new Blob([large]).stream() })).status).toBe(201);
    expect((await call("file", { path: "/large" })).bytes.equals(large)).toBe(true);
    expect([...(files()?.entries.keys() ?? [])]).toEqual(["/", "/large"]);
  });

  it("lists directories of any size", async () => {
    const { call, files } = await create();
    for (let number = 0; number < 1_234; number += 1)
      files()?.write(`/many/${number}`, new Uint8Array(), { given: undefined, force: true });
    expect((await call("dir", { path: "/many" })).body).toHaveLength(1_234);
    await call("dir", { path: "/none" }, { method: "POST" });
    expect((await call("dir", { path: "/none" })).body).toEqual([]);
  });
});
