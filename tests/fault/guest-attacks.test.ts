// What a guest can do to its own sandbox. Other sandboxes and the platform keep running.

import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

describe.each(runtimesFor("attacks of a guest on its own sandbox"))("a guest on %s", (runtime) => {
  let platform: Platform;
  let neighbour: Sandbox;
  let guest: Sandbox;
  let pids: number[];
  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    neighbour = await Sandbox.create(clientOf(platform));
    pids = platform.pids();
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    guest = await Sandbox.create(clientOf(platform));
  });
  afterEach(async () => {
    expect((await neighbour.commands.run("echo well")).stdout).toBe("well\n");
    const another = await Sandbox.create(clientOf(platform));
    await another.kill();
    expect(platform.pids()).toEqual(pids);
    await guest.kill();
  });

  const attack = (command: string) => guest.commands.run(command, { background: true, timeoutMs: 0, user: "root" }).catch(() => undefined);

  /** Both the API and the edge say that the sandbox has ended, and nothing of it is left. */
  async function assertGone(): Promise<void> {
    await expect.poll(() => guest.isRunning()).toBe(false);
    const headers = { "E2b-Sandbox-Id": guest.sandboxId, "E2b-Sandbox-Port": "49983" };
    await expect
      .poll(async () => (await fetch(`${platform.edgeUrl}/health`, { headers })).json())
      .toMatchObject({ sandboxId: guest.sandboxId, message: "The sandbox was not found", code: 502 });
    await expect.poll(async () => (await callApi(platform, `/sandboxes/${guest.sandboxId}`)).status).toBe(404);
    await expect(guest.commands.run("true")).rejects.toThrow();
  }

  /** A sandbox that ends by a signal that is no request to end is paused with its disk, and can be resumed. */
  async function assertEnded(): Promise<void> {
    const detail = async () => (await callApi(platform, `/sandboxes/${guest.sandboxId}`)).body;
    await expect.poll(detail).toMatchObject({ state: "paused", pauseReason: "exited" });
    await guest.connect();
    expect((await guest.commands.run("echo back")).stdout).toBe("back\n");
  }

  it.each([
    ["with a signal to process 1", "kill -9 1; kill -9 -1"],
    ["with signals to every program of the agent's", "for pid in $(pgrep -f skerry); do kill -9 $pid; done; kill -SEGV 1"],
  ])("cannot end its agent %s, or ends its sandbox alone", async (_how, command) => {
    await attack(command);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    // The kernel does not deliver signals to process 1 that it does not handle. If a runtime delivers them, the sandbox ends.
    if (await guest.isRunning()) expect((await guest.commands.run("echo still here")).stdout).toBe("still here\n");
    else await assertEnded();
  });

  it("fills its process table, and gets an error", async () => {
    const bomb = await attack(
      "trap '' TERM; python3 -c 'import os, time\nwhile True:\n  try:\n    if os.fork() == 0: time.sleep(1000)\n  except OSError: time.sleep(0.1)'",
    );
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect((await neighbour.commands.run("echo well")).stdout).toBe("well\n");
    // Either one more process can start, or the response is an error with a reason. The agent itself always responds.
    const outcome = await guest.commands.run("echo one more", { timeoutMs: 120_000 }).then(
      ({ stdout }) => stdout,
      (error: unknown) => String(error),
    );
    expect(outcome).toMatch(/one more|Resource temporarily unavailable|EAGAIN|error starting process/);
    if (bomb) await bomb.kill().catch(() => false);
    await guest.kill();
    await assertGone();
  });

  it("fills its memory, and loses the process that did", async () => {
    const hog = await attack("exec python3 -c 'x = []\nwhile True: x.append(bytearray(b\"x\") * 16_000_000)'");
    const ended = hog?.wait().then(
      () => "ended",
      (error: unknown) => String(error),
    );
    const outcome = await Promise.race([ended, new Promise((resolve) => setTimeout(() => resolve("late"), 180_000))]);
    expect(outcome).toContain("signal: killed");
    expect((await guest.commands.run("echo still here")).stdout).toBe("still here\n");
  });

  it("holds every port and thousands of files, and is still served", async () => {
    await attack(
      "exec python3 -c 'import socket, time\nkeep = []\nfor port in range(1, 60000):\n  try:\n    s = socket.socket(); s.bind((\"0.0.0.0\", port)); s.listen(); keep.append(s)\n  except OSError: pass\nprint(len(keep), flush=True)\ntime.sleep(1000)'",
    );
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect((await guest.commands.run("echo served", { timeoutMs: 120_000 })).stdout).toBe("served\n");
  });
});
