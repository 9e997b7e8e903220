import type { Logger } from "@skerry/base";
import { expect, test } from "vitest";
import { RefusalLog } from "./refusal-log.ts";

test("a flood causes a line every ten seconds for each sandbox and reason, with the number of requests", () => {
  let now = 0;
  const lines: object[] = [];
  const log = new RefusalLog({ warn: (facts: object) => lines.push(facts) } as unknown as Logger, () => now);
  const note = (id: string, reason: "token missing" | "token invalid") =>
    log.note({ sandboxId: id as never, port: 80 }, reason, "192.0.2.1");
  for (; now < 10_000; now += 100) note("ia", "token invalid");
  note("ia", "token missing");
  note("ib", "token invalid");
  note("ia", "token invalid");
  const line = { port: 80, client_address: "192.0.2.1" };
  expect(lines).toEqual([
    { ...line, sandbox_id: "ia", reason: "token invalid", requests: 1 },
    { ...line, sandbox_id: "ia", reason: "token missing", requests: 1 },
    { ...line, sandbox_id: "ib", reason: "token invalid", requests: 1 },
    { ...line, sandbox_id: "ia", reason: "token invalid", requests: 100 },
  ]);
});
