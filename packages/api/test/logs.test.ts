import { Type } from "typebox";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { LogEntrySchema, LogLineSchema } from "../src/http/routes/logs/log-bodies.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const DAY_MS = 24 * 3_600_000;

describeOnEachDatabase("logs of sandboxes", { inSample: "both" }, (api) => {
  const get = (path: string, options = {}) => api().call("GET", path, options);
  const messagesOf = (answer: { body: { logs: { message: string }[] } }) => answer.body.logs.map(({ message }) => message);

  it("tell what became of the sandbox, also after its end, and to its team alone", async () => {
    const id = await api().create();
    await api().call("POST", `/sandboxes/${id}/pause`);
    await api().call("POST", `/v2/sandboxes/${id}/connect`, { body: { timeout: 60 } });
    await api().call("DELETE", `/sandboxes/${id}`);
    const told = ["Sandbox started", "Sandbox paused", "Sandbox resumed", "Sandbox killed, as requested"];
    const forward = await get(`/v2/sandboxes/${id}/logs?direction=forward`);
    expect(Value.Errors(Type.Array(LogEntrySchema), forward.body.logs)).toEqual([]);
    expect(messagesOf(forward)).toEqual(told);
    expect(forward.body.logs[0]).toMatchObject({ level: "info", fields: { logger: "platform", event: "started" } });
    expect(messagesOf(await get(`/v2/sandboxes/${id}/logs`))).toEqual(told.toReversed());
    for (const path of [`/v2/sandboxes/${id}/logs`, `/sandboxes/${id}/logs`]) {
      expect((await get(path, { key: api().otherKey })).body.logs).toEqual([]);
      expect((await get(path, { key: null })).status).toBe(401);
    }
    expect((await get(`/v2/sandboxes/i${"0".repeat(20)}/logs`)).body).toEqual({ logs: [] });
  });

  it("have lines that the command line can parse, whatever the fields are called", async () => {
    const id = await api().create();
    const fields = { level: "none", logger: "none", message: "none", extra: "1" };
    const line = { at: Date.now() + 1_000, level: "warn", logger: "process", message: 'a "quoted"\nline', fields, isGuest: true } as const;
    await api().store.sandboxLogs.append({ sandboxId: id, teamId: api().teamId }, [line]);
    const { body } = await get(`/sandboxes/${id}/logs`);
    expect(Value.Errors(Type.Array(LogLineSchema), body.logs)).toEqual([]);
    const parsed = body.logs.map((one: { line: string }) => JSON.parse(one.line));
    expect(parsed).toMatchObject([
      { level: "info", logger: "platform", message: "Sandbox started" },
      { level: "warn", logger: "process", message: 'a "quoted"\nline', extra: "1" },
    ]);
    expect(body.logEntries.map((entry: { message: string }) => entry.message)).toEqual(["Sandbox started", 'a "quoted"\nline']);
  });

  it("are read on without a gap from a millisecond after the last line, while lines of one millisecond arrive", async () => {
    const id = await api().create();
    const owner = { sandboxId: id, teamId: api().teamId };
    const count = 300;
    const writing = (async () => {
      for (let number = 0; number < count; number += 3) {
        const lines = [0, 1, 2].map(
          (more) => ({ at: Date.now(), level: "info", logger: "process", message: String(number + more) }) as const,
        );
        await api().store.sandboxLogs.append(
          owner,
          lines.map((line) => ({ ...line, fields: {}, isGuest: true })),
        );
      }
    })();
    const seen: string[] = [];
    let start = "";
    await expect
      .poll(
        async () => {
          const { logs } = (await get(`/sandboxes/${id}/logs?limit=7${start}`)).body as { logs: { timestamp: string; line: string }[] };
          seen.push(...logs.map(({ line }) => JSON.parse(line).message));
          const last = logs.at(-1);
          if (last) start = `&start=${new Date(last.timestamp).getTime() + 1}`;
          return seen.length;
        },
        { timeout: 60_000, interval: 1 },
      )
      .toBe(count + 1);
    await writing;
    expect(seen).toEqual(["Sandbox started", ...Array.from({ length: count }, (_, number) => String(number))]);
  });

  it("are searched, limited and read around a time", async () => {
    const id = await api().create();
    const path = `/v2/sandboxes/${id}/logs`;
    const now = Date.now() + DAY_MS;
    await api().store.sandboxLogs.append(
      { sandboxId: id, teamId: api().teamId },
      (["debug", "info", "warn", "error"] as const).map((level, index) => {
        return { at: now + index, level, logger: "agent", message: `a ${level}`, fields: {}, isGuest: false };
      }),
    );
    expect(messagesOf(await get(`${path}?limit=0`))).toEqual([]);
    expect(messagesOf(await get(`${path}?level=warn`))).toEqual(["a error", "a warn"]);
    expect(messagesOf(await get(`${path}?search=a%20w`))).toEqual(["a warn"]);
    expect(messagesOf(await get(`${path}?cursor=${now + 1}&limit=2`))).toEqual(["a info", "a debug"]);
    expect(messagesOf(await get(`${path}?direction=forward&cursor=${now + 2}`))).toEqual(["a warn", "a error"]);
    const wrong = ["cursor=-1", "limit=1001", "limit=-1", "direction=up", "level=none", `search=${"x".repeat(257)}`];
    for (const query of wrong) expect((await get(`${path}?${query}`)).status, query).toBe(400);
    for (const query of ["start=-1", "start=x", "limit=1001"])
      expect((await get(`/sandboxes/${id}/logs?${query}`)).status, query).toBe(400);
  });
});
