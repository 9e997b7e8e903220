import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type ChosenPool, chooseAddressPool } from "../src/network/pool-choice.privileged.ts";

const dir = () => {
  const made = mkdtempSync(join(tmpdir(), "skerry-pool-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
};
const choose = async (file: string, options: { wanted?: string; isInUse?: boolean } = {}): Promise<ChosenPool> => {
  const chosen = await chooseAddressPool({
    file,
    wanted: options.wanted,
    instance: "00c5",
    ipv6: false,
    isInUse: options.isInUse ?? false,
  });
  onTestFinished(() => chosen.reservation?.release());
  return chosen;
};

test("nodes that have no routes yet choose different pools", async () => {
  const [one, two] = [join(dir(), "network.json"), join(dir(), "network.json")];
  const chosen = await Promise.all([choose(one), choose(two)]);
  expect(new Set(chosen.map(({ plan }) => plan.pool)).size).toBe(2);
  expect(chosen.every(({ reservation }) => reservation !== undefined)).toBe(true);
});

test("a pool is chosen again after a restart, unless another node has taken it and no sandbox has its addresses", async () => {
  const [one, two] = [join(dir(), "network.json"), join(dir(), "network.json")];
  const { plan, reservation } = await choose(one);
  await reservation?.release();
  const again = await choose(one);
  expect(again.plan.pool).toBe(plan.pool);
  await again.reservation?.release();
  const other = await choose(two, { wanted: plan.pool });
  expect(other.reservation).toBeDefined();
  expect((await choose(one, { isInUse: true })).plan.pool).toBe(plan.pool);
  expect((await choose(one)).plan.pool).not.toBe(plan.pool);
});
