import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { listCgroups } from "@skerry/runtime";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

describe.each(runtimesFor("a node's basic operations", "runc"))("node on %s", (runtime) => {
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  let count = 0;
  const newId = () => {
    count += 1;
    return `i${String(count).padStart(20, "0")}`;
  };
  const create = (id: string, overrides: object = {}) => under.client.createSandbox({ spec: { ...under.spec(id), ...overrides } });
  const kill = async (sandboxId: string) => (await under.client.killSandbox({ sandboxId })).existed;
  const list = async () => (await under.client.listSandboxes({})).sandboxes.map((one) => [one.sandboxId, one.state]);
  const nothingLeft = async () => {
    expect(await list()).toEqual([]);
    expect(readdirSync(join(under.config.dir, "sandboxes"))).toEqual([]);
    expect(listCgroups(`/skerry-${under.config.instance}`)).toEqual([]);
    expect(areasInUse(under)).toEqual([]);
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(`${under.config.dir}/sandboxes/`);
  };
  const healthOf = async (sandboxId: string) => {
    const socket = await under.node.dial({ sandboxId, port: 49_983 });
    const answer = new Promise<string>((resolve, reject) => {
      socket.once("data", (chunk: Buffer) => resolve(chunk.toString().split("\r\n")[0] ?? ""));
      socket.once("error", reject);
    });
    socket.write("GET /health HTTP/1.0\r\n\r\n");
    const line = await answer;
    socket.destroy();
    return line;
  };

  const openTunnel = async (path: string, secret: string): Promise<{ status: number; socket: Socket }> => {
    const headers = { "Proxy-Authorization": `Bearer ${secret}` };
    const outgoing = request({ port: under.port, method: "CONNECT", path, headers }).end();
    const [response, socket] = (await once(outgoing, "connect")) as [IncomingMessage, Socket];
    return { status: response.statusCode ?? 0, socket };
  };

  it("creates, answers and kills", async () => {
    const id = newId();
    expect(await create(id)).toMatchObject({ runtime });
    expect(await list()).toEqual([[id, "running"]]);
    expect(await healthOf(id)).toContain("204");
    expect(await kill(id)).toBe(true);
    expect(await kill(id)).toBe(false);
    await nothingLeft();
  });

  it("gives a network slot back once, also where its disk can't be let go of at once", async () => {
    const slotOf = (id: string) => {
      const records = readdirSync(join(under.config.dir, "sandboxes")).map(
        (name) => JSON.parse(readFileSync(join(under.config.dir, "sandboxes", name, "sandbox.json"), "utf8")) as Record<string, unknown>,
      );
      return records.find(({ sandboxId }) => sandboxId === id) as { area: string; slot: { number: number } };
    };
    const [held, ...others] = [newId(), newId(), newId(), newId()];
    await create(held ?? "");
    const area = join(under.config.dir, "areas", slotOf(held ?? "").area);
    // What is mounted can't be moved away.
    execFileSync("mount", ["--bind", area, area]);
    await expect(kill(held ?? "")).rejects.toThrow();
    for (const id of others.slice(0, 2)) await create(id);
    await expect(kill(held ?? "")).rejects.toThrow();
    execFileSync("umount", ["--lazy", area]);
    await kill(held ?? "");
    await create(others[2] ?? "");
    expect(new Set(others.map((id) => slotOf(id).slot.number)).size).toBe(3);
    for (const id of others) expect(await healthOf(id)).toContain("204");
    for (const id of others) await kill(id);
    await nothingLeft();
  });

  it("refuses a second sandbox of the same id, and ids that are none", async () => {
    const id = newId();
    await create(id);
    await expect(create(id)).rejects.toMatchObject({ rawMessage: expect.stringContaining("exists") });
    for (const wrong of ["", "../etc", "UPPER", "a/b", "x".repeat(100), `${id}-6532622b`]) {
      await expect(create(wrong)).rejects.toMatchObject({ rawMessage: expect.stringContaining("not a sandbox id") });
    }
    await kill(id);
    await nothingLeft();
  });

  it("leaves nothing of a create that fails on the way", async () => {
    await expect(create(newId(), { layers: [`sha256:${"0".repeat(64)}`] })).rejects.toMatchObject({
      rawMessage: expect.stringContaining("not on this machine"),
    });
    await expect(create(newId(), { runtime: "vmware" })).rejects.toMatchObject({ rawMessage: expect.stringContaining("not set up") });
    await nothingLeft();
  });

  it("kills what is still being created", async () => {
    const id = newId();
    const creating = create(id).catch((error: unknown) => error);
    expect(await kill(id)).toBe(true);
    await creating;
    await nothingLeft();
  });

  it("notices a sandbox that ends by itself, resets its connections and releases it", async () => {
    const id = newId();
    await create(id);
    const socket = await under.node.dial({ sandboxId: id, port: 49_983 });
    const ended = new Promise<string>((resolve) => {
      socket.once("close", () => resolve("closed"));
      socket.on("error", () => {});
    });
    const record = JSON.parse(readFileSync(join(under.config.dir, "sandboxes", id, "sandbox.json"), "utf8"));
    process.kill(record.process.pid, "SIGKILL");
    expect(await ended).toBe("closed");
    await waitUntil("it is released", async () => (await list()).length === 0);
    await expect(under.node.dial({ sandboxId: id, port: 49_983 })).rejects.toMatchObject({ code: "sandbox_gone" });
    const { kept } = await under.client.listSandboxes({});
    expect(kept).toMatchObject([{ sandboxId: id, reason: "exited" }]);
    for (const { imageId } of kept) await under.client.deleteImage({ imageId });
    await waitUntil("it is given back", () => areasInUse(under).length === 0);
    await nothingLeft();
  });

  it("adopts what runs after a restart, clears a folder whose record was lost, and sets a damaged one aside", async () => {
    const [kept, lost, damaged] = [newId(), newId(), newId()];
    for (const id of [kept, lost, damaged]) await create(id);
    const recordOf = (id: string) => join(under.config.dir, "sandboxes", id, "sandbox.json");
    rmSync(recordOf(lost));
    writeFileSync(recordOf(damaged), "");
    await under.restart();
    expect(await list()).toEqual([[kept, "running"]]);
    expect(await healthOf(kept)).toContain("204");
    expect(readdirSync(join(under.config.dir, "damaged"))).toEqual([`${damaged}.json`]);
    rmSync(join(under.config.dir, "damaged"), { recursive: true });
    await under.restart();
    await kill(kept);
    await nothingLeft();
  });

  it("deletes what a guest left, deeper than any path can name", async () => {
    const id = newId();
    await create(id);
    const program = "import os\nfor i in range(60):\n  os.mkdir('d' * 100); os.chdir('d' * 100)\nopen('bottom', 'w')";
    const { area } = JSON.parse(readFileSync(join(under.config.dir, "sandboxes", id, "sandbox.json"), "utf8")) as { area: string };
    execFileSync("/usr/bin/python3", ["-c", program], { cwd: join(under.config.dir, "areas", area, "fs/u/tmp") });
    await kill(id);
    await waitUntil("the trash is empty", () => readdirSync(join(under.config.dir, "trash")).length === 0);
    await nothingLeft();
  });

  it("stops while a tunnel is open, which is reset", async () => {
    const id = newId();
    await create(id);
    const { socket } = await openTunnel(`${id}:49983`, under.secret.reveal());
    const broken = once(socket, "error");
    await under.restart();
    expect((await broken)[0]).toMatchObject({ code: "ECONNRESET" });
    expect(await healthOf(id)).toContain("204");
    await kill(id);
    await nothingLeft();
  });

  it("opens tunnels for who has the cluster secret, and for nobody else", async () => {
    const id = newId();
    await create(id);
    const tunnel = async (target: string, clusterSecret: string) => {
      const { status, socket } = await openTunnel(target, clusterSecret);
      if (status === 200) socket.write("GET /health HTTP/1.0\r\n\r\n");
      const answer = status === 200 ? String(((await once(socket, "data")) as [Buffer])[0]) : "";
      socket.destroy();
      return { status, answer };
    };
    const secret = under.secret.reveal();
    expect(await tunnel(`${id}:49983`, secret)).toMatchObject({ status: 200, answer: expect.stringContaining("204") });
    expect((await tunnel(`${id}:49983`, "guess")).status).toBe(401);
    expect((await tunnel(`${id}:49983`, "")).status).toBe(401);
    expect((await tunnel(`${newId()}:49983`, secret)).status).toBe(404);
    expect((await tunnel(`${id}:9`, secret)).status).toBe(502);
    for (const wrong of [`${id}:0`, `${id}:99999`, `${id}:08`, "../x:80", "127.0.0.1:22"])
      expect((await tunnel(wrong, secret)).status).toBe(400);
    await kill(id);
    await nothingLeft();
  });
});
