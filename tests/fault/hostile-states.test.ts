// Kinds of process state that are hard to save. Either every operation keeps the state, or the operation is refused with the reason and
// the sandbox keeps running.

import { sampleOf } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { allOk, HostileGuest, KEPT_STATES } from "./hostile-states/hostile-guest.ts";

interface Operation {
  readonly name: string;
  /** Returns all guests that must have the complete state afterwards. */
  readonly run: (guest: HostileGuest) => Promise<HostileGuest[]>;
}

describe("hostile states on gvisor", () => {
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform("gvisor");
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const create = (options: object = {}) => Sandbox.create({ ...clientOf(platform), timeoutMs: 600_000, ...options });
  const post = (id: string, what: string, body: object = {}) => callApi(platform, `/sandboxes/${id}/${what}`, { method: "POST", body });
  const connect = async (id: string) => {
    const answer = await post(id, "connect", { timeout: 600 });
    expect(answer).toMatchObject({ status: 201 });
    expect(answer.headers.get("skerry-memory-lost")).toBeNull();
  };
  const connected = async (id: string) => new HostileGuest(await Sandbox.connect(id, clientOf(platform)));

  const operations: Operation[] = [
    {
      name: "pause and resume",
      run: async (guest) => {
        expect(await post(guest.sandbox.sandboxId, "pause")).toMatchObject({ status: 204 });
        await connect(guest.sandbox.sandboxId);
        return [guest];
      },
    },
    {
      name: "snapshot",
      run: async (guest) => {
        expect(await post(guest.sandbox.sandboxId, "snapshots")).toMatchObject({ status: 201 });
        return [guest];
      },
    },
    {
      name: "fork",
      run: async (guest) => {
        const { status, body } = await post(guest.sandbox.sandboxId, "fork", { count: 1, timeout: 600 });
        expect(status).toBe(201);
        const [{ sandbox }] = body as [{ sandbox: { sandboxID: string } }];
        return [guest, await connected(sandbox.sandboxID)];
      },
    },
    {
      name: "fork of the paused one",
      run: async (guest) => {
        const { sandboxId } = guest.sandbox;
        expect(await post(sandboxId, "pause")).toMatchObject({ status: 204 });
        const { status, body } = await post(sandboxId, "fork", { count: 1, timeout: 600 });
        expect(status).toBe(201);
        await connect(sandboxId);
        const [{ sandbox }] = body as [{ sandbox: { sandboxID: string } }];
        return [guest, await connected(sandbox.sandboxID)];
      },
    },
    {
      name: "pause when its time is over",
      run: async (guest) => {
        const { sandboxId } = guest.sandbox;
        await guest.sandbox.setTimeout(1_000);
        const detail = async () => (await callApi(platform, `/sandboxes/${sandboxId}`)).body as { pauseMode?: string };
        await waitUntil("it is paused", async () => (await detail()).pauseMode === "full", 120_000);
        await connect(sandboxId);
        return [guest];
      },
    },
  ];

  it("keeps everything that can coexist, through each operation", async () => {
    const guest = await HostileGuest.start(await create({ lifecycle: { onTimeout: "pause" } }));
    expect(await guest.make(...KEPT_STATES)).toEqual(allOk(KEPT_STATES));
    const whole = allOk(KEPT_STATES);
    expect(await guest.check()).toEqual(whole);
    for (const { name, run } of sampleOf("operations on hostile states", operations, (_, index) => index < 2)) {
      for (const one of await run(guest)) {
        expect(await one.check(), name).toEqual(whole);
        if (one !== guest) await one.sandbox.kill();
      }
    }
    await guest.sandbox.kill();
  });

  it("refuses states that cannot be kept, with the reason, at every attempt, and the sandbox keeps running", async () => {
    const guest = await HostileGuest.start(await create());
    const { sandboxId } = guest.sandbox;
    await guest.make("pipe", "deleted_small");
    const refusals: Record<string, RegExp> = {
      refused_fifo: /"\/root\/held\/refused_fifo" open, a deleted link, FIFO or socket/,
      refused_link: /"\/root\/held\/refused_link" open, a deleted link, FIFO or socket/,
      refused_socket: /"\/root\/held\/refused_socket" open, a deleted link, FIFO or socket/,
      refused_name: /n{200}" open, whose name is too long/,
      refused_hole:
        /the deleted file "\/root\/held\/refused_hole" \(10737418240 bytes\) and 1 others, 10737419240 bytes together open; up to/,
      refused_size: /the deleted file "\/root\/held\/refused_size\d" \(52428800 bytes\) and 3 others, 157287400 bytes together open; up to/,
    };
    const cases = Object.entries(refusals).flatMap(([name, cause], at) => {
      return ["pause", "snapshots", "fork"].map((what, index) => ({ name, cause, what, inSample: index === at % 3 }));
    });
    for (const { name, cause, what } of sampleOf("refused operations", cases, ({ inSample }) => inSample)) {
      await guest.make(name);
      const { status, body, headers } = await post(sandboxId, what, what === "fork" ? { count: 1 } : {});
      expect({ status, body }).toMatchObject({ status: 422, body: { code: 422, error_code: "sandbox_state_not_savable" } });
      expect((body as { message: string }).message).toMatch(cause);
      expect((body as { message: string }).message).toMatch(/The sandbox keeps running/);
      expect(headers.get("should-retry")).not.toBe("true");
      expect(await guest.check()).toEqual(allOk(["pipe", "deleted_small", name]));
      await guest.drop(name);
    }
    expect(await post(sandboxId, "pause")).toMatchObject({ status: 204 });
    await connect(sandboxId);
    expect(await guest.check()).toEqual(allOk(["pipe", "deleted_small"]));

    // The disk can be kept whatever files a process has open.
    await guest.make("refused_fifo", "refused_hole");
    expect(await post(sandboxId, "pause", { memory: false })).toMatchObject({ status: 204 });
    await connect(sandboxId);
    const { stdout } = await guest.sandbox.commands.run("ls /root/guest.py; pgrep -f '[u] /root/guest.py' || echo booted", {
      user: "root",
    });
    expect(stdout).toBe("/root/guest.py\nbooted\n");
    await guest.sandbox.kill();
  });
});
