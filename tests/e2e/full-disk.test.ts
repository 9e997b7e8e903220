import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

const MIB = 1024 * 1024;
const PARTS = ["/home/user/part-1", "/home/user/part-2"];

describe.each(["gvisor", "runc"] as const)("a sandbox on %s whose disk is full", (runtime) => {
  let platform: SharedPlatform;
  let full: Sandbox;
  let other: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    [full, other] = await Promise.all([Sandbox.create("base", clientOf(platform)), Sandbox.create("base", clientOf(platform))]);
    await full.files.write(PARTS.map((path) => ({ path, data: new Blob([new Uint8Array(MIB)]) })));
    // Allocate the whole disk without writing. Less than a file of 1 MiB is left.
    await full.commands.run("while fallocate -l 1G big$((n += 1)) 2>/dev/null; do :; done; cat /dev/zero > rest; true", {
      timeoutMs: 120_000,
    });
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it("reports the full disk to programs and uploads, and everything else keeps working", async () => {
    const copy = await full.commands.run("head -c 1000000 /dev/urandom > more").catch((error: unknown) => error);
    expect(copy).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("No space left on device") });
    for (const sizeMb of [0.01, 1, 1, 8, 1, 8, 1, 0.01]) {
      const content = new Blob([new Uint8Array(sizeMb * MIB)]);
      await expect(full.files.write(`uploaded-${sizeMb}`, content)).rejects.toThrow(/not enough disk space/i);
    }
    expect((await full.commands.run("echo alive")).stdout).toBe("alive\n");
    expect((await full.files.list("/home/user")).some(({ name }) => name === "rest")).toBe(true);
  });

  it("cannot concatenate files, and keeps them", async () => {
    const { envdAccessToken = "" } = full as unknown as { envdAccessToken?: string };
    const response = await fetch(`${platform.edgeUrl}/files/compose`, {
      method: "POST",
      headers: { "E2b-Sandbox-Id": full.sandboxId, "E2b-Sandbox-Port": "49983", "X-Access-Token": envdAccessToken },
      body: JSON.stringify({ source_paths: PARTS, destination: "/home/user/whole", username: "user" }),
    });
    expect(response.status).toBe(507);
    expect(await response.json()).toEqual({ code: 507, message: expect.stringContaining("not enough disk space available") });
    for (const path of PARTS) expect((await full.files.getInfo(path)).size).toBe(MIB);
    expect(await full.files.exists("/home/user/whole")).toBe(false);
  });

  it("takes no space from other sandboxes", async () => {
    await other.commands.run("head -c 50000000 /dev/urandom > file && sync file");
    await other.files.write("uploaded", new Blob([new Uint8Array(MIB)]));
  });

  // On runc a snapshot is a copy, and the sandbox keeps its disk.
  if (runtime === "gvisor")
    it("is as full after a snapshot, as df shows, and has all its space back when the files are deleted", async () => {
      const shown = async () => {
        const { stdout } = await full.commands.run("df --output=size,avail --block-size=1M / | tail -1");
        const [size = 0, available = 0] = stdout.trim().split(/ +/).map(Number);
        return { size, available };
      };
      const before = await shown();
      await full.createSnapshot();
      expect(await shown()).toEqual({ size: before.size, available: expect.toSatisfy((mb: number) => mb <= 2) });
      expect(await full.commands.run("head -c 3000000 /dev/urandom > more").catch((error: unknown) => error)).toMatchObject({
        exitCode: 1,
      });
      await full.commands.run("rm -f more rest big*");
      await full.createSnapshot();
      await full.createSnapshot();
      const { size, available } = await shown();
      expect(size).toBe(before.size);
      expect(available).toBeGreaterThan(0.95 * size);
    });

  it("works again when there is space", async () => {
    await full.commands.run("rm -f rest big*");
    await full.files.write("uploaded", new Blob([new Uint8Array(MIB)]));
    expect((await full.files.getInfo("uploaded")).size).toBe(MIB);
  });

  it("can be killed when it is full", async () => {
    await full.commands.run("while fallocate -l 1G big$((n += 1)) 2>/dev/null; do :; done; cat /dev/zero > rest; true", {
      timeoutMs: 120_000,
    });
    expect(await full.kill()).toBe(true);
  });
});
