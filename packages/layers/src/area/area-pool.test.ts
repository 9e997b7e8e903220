import { expect, it } from "vitest";
import { AreaPool } from "./area-pool.ts";

function poolOf(ready: number) {
  const log = { made: [] as number[], discarded: [] as number[], failures: [] as unknown[], atOnce: 0, most: 0, failing: false };
  const pool = new AreaPool<{ sizeMb: number }>({
    ready,
    async make(sizeMb) {
      log.atOnce += 1;
      log.most = Math.max(log.most, log.atOnce);
      await Promise.resolve();
      log.atOnce -= 1;
      if (log.failing) throw new Error("no room");
      log.made.push(sizeMb);
      return { sizeMb };
    },
    async discard({ sizeMb }) {
      log.discarded.push(sizeMb);
    },
    onFailure: (error) => log.failures.push(error),
  });
  return { pool, log };
}

it("has nothing at first, then as many as are wanted, made one at a time", async () => {
  const { pool, log } = poolOf(3);
  expect(pool.take(10)).toBeUndefined();
  await pool.settled();
  expect(pool.items()).toHaveLength(3);
  expect(pool.take(10)).toEqual({ sizeMb: 10 });
  await pool.settled();
  expect(log).toMatchObject({ made: [10, 10, 10, 10], most: 1 });
});

it("keeps the sizes that were asked for lately and discards the others", async () => {
  const { pool, log } = poolOf(1);
  for (const sizeMb of [1, 2, 3, 4, 1, 5]) {
    pool.want(sizeMb);
    await pool.settled();
  }
  expect(log.discarded).toEqual([2]);
  expect(
    pool
      .items()
      .map(({ sizeMb }) => sizeMb)
      .sort(),
  ).toEqual([1, 3, 4, 5]);
});

it("says why it could not make one, and tries again when it is asked again", async () => {
  const { pool, log } = poolOf(2);
  log.failing = true;
  pool.want(1);
  await pool.settled();
  expect(log.failures).toHaveLength(1);
  log.failing = false;
  expect(pool.take(1)).toBeUndefined();
  await pool.settled();
  expect(pool.items()).toHaveLength(2);
});

it("discards all at the end, also what was just being made, and makes no more", async () => {
  const { pool, log } = poolOf(4);
  pool.want(1);
  await new Promise((resolve) => setImmediate(resolve));
  await pool.close();
  pool.want(1);
  await pool.settled();
  expect(pool.items()).toEqual([]);
  expect(log.discarded).toEqual(log.made);
});

it("makes none when none are to be ready", async () => {
  const { pool, log } = poolOf(0);
  pool.want(1);
  await pool.settled();
  expect(log.made).toEqual([]);
});
