import { Code } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { Followers } from "./followers.ts";
import type { ProcessEvent, Subscriber } from "./subscriber.ts";

const BYTES = 32 * 1024;
const EVENT: ProcessEvent = { case: "data", value: { output: { case: "stdout", value: new Uint8Array(BYTES) } } };

/** Acts as the process: writes until it has to wait. Returns the number of bytes written. */
async function write(followers: Followers, wanted: number, readers: readonly Subscriber[]): Promise<number> {
  let written = 0;
  while (written < wanted && !followers.areFull) {
    followers.push(EVENT, BYTES);
    written += BYTES;
    for (const reader of readers) await reader.next(0);
  }
  return written;
}

it("makes the process wait for a follower that does not read, and for none", async () => {
  const followers = new Followers(() => {});
  expect(await write(followers, 2 ** 20, [])).toBe(2 ** 20);
  const alone = followers.add();
  expect(await write(followers, 2 ** 24, [])).toBeLessThan(2 ** 20);
  followers.remove(alone);
  expect(followers.areFull).toBe(false);
});

it("cuts off a follower that stays behind a faster one, and waits for the others again", async () => {
  const followers = new Followers(() => {});
  const [stalled, reading] = [followers.add(), followers.add()];
  await write(followers, 2 ** 25, [reading]);
  await expect(stalled.next(0)).rejects.toMatchObject({ code: Code.ResourceExhausted });
  expect(await write(followers, 2 ** 25, [])).toBeLessThan(2 ** 20);
  expect(await reading.next(0)).toBe(EVENT);
});

it("waits for the others when one was ended by its client or its deadline", async () => {
  const followers = new Followers(() => {});
  const [gone, slow] = [followers.add(), followers.add()];
  gone.fail(Object.assign(new Error("canceled"), { code: Code.Canceled }) as never);
  expect(await write(followers, 2 ** 25, [])).toBeLessThan(2 ** 20);
  expect(await slow.next(0)).toBe(EVENT);
});
