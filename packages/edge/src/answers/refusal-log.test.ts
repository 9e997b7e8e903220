import type { Logger } from "@skerry/base";
import { expect, test } from "vitest";
import { RefusalLog, type RefusalReason } from "./refusal-log.ts";

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

test("a flood that names ever other sandboxes causes no more than a hundred lines in ten seconds", () => {
  let now = 0;
  const lines: { sandbox_id?: string; reason: RefusalReason; requests: number }[] = [];
  const log = new RefusalLog({ warn: (facts: (typeof lines)[0]) => lines.push(facts) } as unknown as Logger, () => now);
  for (let n = 0; n < 5_000; n++) log.note({ sandboxId: `i${n}` as never, port: 80 }, "link invalid", "192.0.2.1");
  log.note({ sandboxId: "i4999" as never, port: 80 }, "link invalid", "192.0.2.1");
  expect(lines).toHaveLength(100);
  now = 10_000;
  log.note({ sandboxId: "i4999" as never, port: 80 }, "link invalid", "192.0.2.1");
  log.note({}, "target invalid", "192.0.2.1");
  expect(lines.slice(100)).toEqual([
    { sandbox_id: "i4999", port: 80, reason: "link invalid", client_address: "192.0.2.1", requests: 3 },
    { reason: "target invalid", client_address: "192.0.2.1", requests: 1 },
  ]);
});
