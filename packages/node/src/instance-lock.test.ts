import { expect, it } from "vitest";
import { lockInstance } from "./instance-lock.ts";

it("is had by one at a time, and free again after its release", async () => {
  const first = await lockInstance("0f0f");
  await expect(lockInstance("0f0f")).rejects.toMatchObject({ code: "already_running" });
  const other = await lockInstance("0f0e");
  await other.release();
  await first.release();
  const second = await lockInstance("0f0f");
  await second.release();
});
