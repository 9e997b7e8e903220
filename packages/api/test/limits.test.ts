import { randomUUID } from "node:crypto";
import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { TeamLimitsSchema, TierSchema } from "../src/http/routes/limits/limit-bodies.ts";
import type { Answer } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("the limits of teams", { inSample: "sqlite" }, (api) => {
  const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
    api().call(method, path, { key: null, headers: { "X-Admin-Token": api().adminToken }, ...(body === undefined ? {} : { body }) });
  const path = () => `/admin/teams/${api().teamId}/limits`;
  const override = async (overrides: object) => {
    const answer = await admin("PUT", path(), { overrides });
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };
  const post = (url: string, body: object = {}) => api().call("POST", url, { body });
  const create = () => post("/v2/sandboxes", { templateID: "base" });
  const refusal = (text: string) => ({ code: 429, message: expect.stringContaining(text) });

  it("come from the team, its tier and the settings, and count for the next request", async () => {
    const tier = await admin("PUT", "/admin/tiers/pro", { limits: { sandboxes: 2, snapshots: 5, volumes: null } });
    expect(Value.Errors(TierSchema, tier.body)).toEqual([]);
    expect(tier.body).toMatchObject({
      name: "pro",
      set: { sandboxes: 2, snapshots: 5, volumes: null },
      limits: { timeoutHours: 24, cpu: null },
    });
    const tiers = await admin("GET", "/admin/tiers");
    expect(tiers.body.map(({ name }: { name: string }) => name)).toEqual(["default", "pro"]);
    expect(tiers.body[0].limits.sandboxes).toBe(1000);
    const given = await admin("PUT", path(), { tier: "pro", overrides: { sandboxes: 1 } });
    expect(Value.Errors(TeamLimitsSchema, given.body)).toEqual([]);
    expect(given.body).toMatchObject({ tier: "pro", overrides: { sandboxes: 1 }, limits: { sandboxes: 1, snapshots: 5 } });
    expect((await create()).status).toBe(201);
    const refused = await create();
    expect(refused.body).toEqual(refusal("maximum number of concurrent E2B sandboxes (1)"));
    expect(refused.headers["should-retry"]).toBe("false");
    expect(refused.headers).not.toHaveProperty("retry-after");
    await admin("PUT", path(), { tier: "pro" });
    expect((await create()).status).toBe(201);
    expect((await admin("DELETE", "/admin/tiers/pro")).status).toBe(409);
    await admin("PUT", path(), {});
    expect((await admin("DELETE", "/admin/tiers/pro")).status).toBe(204);
    const own = await api().call("GET", `/teams/${api().teamId}/limits`);
    expect(own.body).toEqual((await admin("GET", path())).body);
    expect(own.body).toMatchObject({ tier: "default", overrides: {}, use: { sandboxes: 2, cpu: 4, memoryMB: 1024, diskMB: 2048 } });
  });

  it("are the operator's to set, and each team's own to read", async () => {
    for (const [method, url] of [
      ["GET", "/admin/tiers"],
      ["PUT", "/admin/tiers/pro"],
      ["DELETE", "/admin/tiers/pro"],
      ["GET", path()],
      ["PUT", path()],
    ] as const) {
      expect((await api().call(method, url, method === "PUT" ? { body: { limits: {} } } : {})).status).toBe(401);
    }
    expect((await api().call("GET", `/teams/${api().teamId}/limits`, { key: api().otherKey })).status).toBe(403);
    expect((await api().call("GET", `/teams/${randomUUID()}/limits`)).status).toBe(403);
    expect((await admin("GET", `/admin/teams/${randomUUID()}/limits`)).body).toEqual({ code: 404, message: "Team not found" });
    expect((await admin("GET", "/admin/teams/x/limits")).status).toBe(400);
    expect((await admin("PUT", "/admin/tiers/default", { limits: {} })).status).toBe(409);
    expect((await admin("DELETE", "/admin/tiers/none")).status).toBe(404);
    expect((await admin("PUT", path(), { tier: "none" })).body).toEqual({ code: 400, message: "There is no tier 'none'" });
    for (const limits of [{ sandboxes: -1 }, { sandboxes: 1.5 }, { sandboxes: "1" }, { sandboxCpu: 33 }, { sandboxs: 1 }, []]) {
      expect((await admin("PUT", "/admin/tiers/pro", { limits })).body).toEqual({
        code: 400,
        message: expect.stringMatching(/^validation error/),
      });
    }
    for (const name of ["Pro", "a/b", "-a", "a".repeat(64), "\u0000"]) {
      expect((await admin("PUT", `/admin/tiers/${encodeURIComponent(name)}`, { limits: {} })).status).toBe(400);
    }
  });

  describe("are kept", () => {
    it("by creates, resumes, connects and forks: vCPUs, memory and disks in total", async () => {
      const first = (await create()).body.sandboxID;
      await override({ cpu: 3 });
      expect((await create()).body).toEqual(refusal("vCPUs of concurrent sandboxes (3)"));
      await override({ memoryMB: 1023 });
      expect((await create()).body).toEqual(refusal("memory of concurrent sandboxes in MiB (1023)"));
      await override({ diskMB: 2047 });
      expect((await create()).body).toEqual(refusal("disk size of all your sandboxes in MiB (2047)"));
      await override({ cpu: 4 });
      expect((await post(`/sandboxes/${first}/pause`)).status).toBe(204);
      const second = (await create()).body.sandboxID;
      const third = (await create()).body.sandboxID;
      for (const url of [`/v2/sandboxes/${first}/connect`, `/sandboxes/${first}/connect`, `/sandboxes/${first}/resume`]) {
        expect((await post(url, { timeout: 60 })).body).toEqual(refusal("vCPUs of concurrent sandboxes (4)"));
      }
      expect((await post(`/sandboxes/${second}/fork`)).body).toEqual([{ error: refusal("vCPUs") }]);
      expect((await api().call("DELETE", `/sandboxes/${third}`)).status).toBe(204);
      expect((await post(`/sandboxes/${second}/fork`)).body).toEqual([{ sandbox: expect.anything() }]);
      await override({ sandboxes: 0 });
      expect((await create()).body).toEqual(refusal("concurrent E2B sandboxes (0)"));
    });

    it("by the size of a sandbox, which a build and a create may not exceed", async () => {
      const build = (body: object) => post("/v3/templates", { name: "sized", ...body });
      const running = (await create()).body.sandboxID;
      await override({ sandboxCpu: 1, sandboxMemoryMB: 256, sandboxDiskMB: 1024 });
      expect((await create()).body).toEqual({ code: 400, message: expect.stringContaining("at most 1 (sandboxCpu)") });
      expect((await post(`/sandboxes/${running}/fork`)).body).toEqual([
        { error: { code: 400, message: expect.stringContaining("sandboxCpu") } },
      ]);
      expect((await build({ cpuCount: 2 })).body).toEqual({ code: 400, message: "CPU count must be at most 1" });
      expect((await build({ memoryMB: 512 })).body).toEqual({ code: 400, message: "Memory can't be higher than 256 MiB" });
      const built = await build({ minFreeDiskMb: 50_000 });
      expect(built.status).toBe(202);
      expect(await api().store.builds.findEntry(built.body.buildID)).toMatchObject({ cpuCount: 1, memoryMb: 256, diskSizeMb: 1024 });
      // What the team has already goes on, and can be paused and resumed.
      expect((await post(`/sandboxes/${running}/pause`)).status).toBe(204);
      expect((await post(`/v2/sandboxes/${running}/connect`)).status).toBe(201);
    });

    it("by timeouts, builds and snapshots", async () => {
      const id = (await create()).body.sandboxID;
      await override({ timeoutHours: 1, snapshots: 1, builds: 0 });
      const late = { code: 400, message: "Timeout cannot be greater than 1 hours" };
      expect((await post("/v2/sandboxes", { templateID: "base", timeout: 3601 })).body).toEqual(late);
      expect((await post(`/v2/sandboxes/${id}/connect`, { timeout: 3601 })).body).toEqual(late);
      expect((await post(`/sandboxes/${id}/timeout`, { timeout: 7200 })).status).toBe(204);
      const { startedAt, endAt } = (await api().call("GET", `/sandboxes/${id}`)).body;
      expect(Date.parse(endAt) - Date.parse(startedAt)).toBe(3_600_000);
      expect((await post("/v3/templates", { name: "x" })).body).toEqual(refusal("concurrent template builds (0)"));
      const taken = await post(`/sandboxes/${id}/snapshots`, { name: "one" });
      expect(taken.status).toBe(201);
      expect((await post(`/sandboxes/${id}/snapshots`)).body).toEqual(refusal("maximum number of snapshots (1)"));
      expect((await api().call("GET", `/sandboxes/${id}`)).body.state).toBe("running");
      expect((await post(`/sandboxes/${id}/fork`)).body).toEqual([{ sandbox: expect.anything() }]);
      const [snapshot] = (await api().call("GET", "/snapshots")).body;
      expect((await api().call("DELETE", `/templates/${encodeURIComponent(snapshot.snapshotID)}`)).status).toBe(204);
      expect((await post(`/sandboxes/${id}/snapshots`)).status).toBe(201);
    });
  });
});
