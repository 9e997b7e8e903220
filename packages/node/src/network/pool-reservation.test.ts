import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { reservePool } from "./pool-reservation.ts";

test("one holder at a time has a pool", async () => {
  const pool = `test-${randomUUID()}`;
  const first = await reservePool(pool);
  expect(first).toBeDefined();
  expect(await reservePool(pool)).toBeUndefined();
  const other = await reservePool(`${pool}-other`);
  expect(other).toBeDefined();
  await first?.release();
  const next = await reservePool(pool);
  expect(next).toBeDefined();
  await Promise.all([other?.release(), next?.release()]);
});
