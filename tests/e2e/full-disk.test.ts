import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

const MIB = 1024 * 1024;

describe.each(["gvisor", "runc"] as const)("a sandbox on %s whose disk is full", (runtime) => {
  let platform: Platform;
  let full: Sandbox;
  let other: Sandbox;
  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    [full, other] = await Promise.all([Sandbox.create("base", clientOf(platform)), Sandbox.create("base", clientOf(platform))]);
    // All of it, without writing it: what is left is less than a file of one MiB.
    await full.commands.run("while fallocate -l 1G big$((n += 1)) 2>/dev/null; do :; done; cat /dev/zero > rest; true", {
      timeoutMs: 120_000,
    });
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it("hears so, from programs and from an upload, and nothing else stops", async () => {
    const copy = await full.commands.run("head -c 1000000 /dev/urandom > more").catch((error: unknown) => error);
    expect(copy).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("No space left on device") });
    for (const sizeMb of [0.01, 1, 1, 8, 1, 8, 1, 0.01]) {
      const content = new Blob([new Uint8Array(sizeMb * MIB)]);
      await expect(full.files.write(`uploaded-${sizeMb}`, content)).rejects.toThrow(/not enough disk space/i);
    }
    expect((await full.commands.run("echo alive")).stdout).toBe("alive\n");
    expect((await full.files.list("/home/user")).some(({ name }) => name === "rest")).toBe(true);
  });

  it("takes nothing from others", async () => {
    await other.commands.run("head -c 50000000 /dev/urandom > file && sync file");
    await other.files.write("uploaded", new Blob([new Uint8Array(MIB)]));
  });

  it("goes on when there is room again", async () => {
    await full.commands.run("rm rest big*");
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
