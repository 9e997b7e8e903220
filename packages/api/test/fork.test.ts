import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxSchema } from "../src/http/schemas.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("forks", { inSample: "postgres" }, (api) => {
  const fork = (id: string, body?: unknown) => api().call("POST", `/sandboxes/${id}/fork`, body === undefined ? {} : { body });
  const detail = async (id: string) => (await api().call("GET", `/sandboxes/${id}`)).body;

  it("of a running sandbox inherit what it is, and have ids, tokens and a time of their own", async () => {
    const options = { metadata: { a: "b" }, allow_internet_access: false, autoPause: true, autoResume: { enabled: true } };
    const source = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 900, ...options } });
    const id = source.body.sandboxID;
    const before = await detail(id);
    const answer = await fork(id, { count: 3, timeout: 60 });
    expect(answer.status).toBe(201);
    expect(answer.body).toHaveLength(3);
    const forks = answer.body.map(({ sandbox }: { sandbox: { sandboxID: string; envdAccessToken: string } }) => sandbox);
    expect(new Set([id, ...forks.map((each: { sandboxID: string }) => each.sandboxID)]).size).toBe(4);
    for (const each of forks) {
      expect(Value.Errors(SandboxSchema, each)).toEqual([]);
      expect(each).toMatchObject({ templateID: api().templateId, alias: "base" });
      const got = await detail(each.sandboxID);
      expect(got).toMatchObject({
        state: "running",
        metadata: { a: "b" },
        allowInternetAccess: false,
        envdAccessToken: each.envdAccessToken,
      });
      expect(got.lifecycle).toEqual({ autoResume: true, onTimeout: "pause" });
      expect(Date.parse(got.endAt) - Date.parse(got.startedAt)).toBe(60_000);
      const { spec } = api().node.held.get(each.sandboxID) ?? {};
      expect(spec).toMatchObject({ accessToken: each.envdAccessToken, options: { allowInternetAccess: false } });
    }
    expect(await detail(id)).toEqual(before);
    await waitUntil("its image is gone", () => api().node.images.size === 0);
    expect(api().node.countCalls("snapshot")).toBe(1);
  });

  it("get five minutes, and are one, when nothing else is asked for", async () => {
    const id = await api().create();
    for (const body of [undefined, {}]) {
      const answer = await fork(id, body);
      expect(answer.body).toHaveLength(1);
      const { startedAt, endAt } = await detail(answer.body[0].sandbox.sandboxID);
      expect(Date.parse(endAt) - Date.parse(startedAt)).toBe(300_000);
    }
  });

  it("of a paused sandbox leave it paused", async () => {
    const id = await api().create();
    await api().call("POST", `/sandboxes/${id}/pause`);
    api().node.snapshot = "hang";
    const forking = fork(id, { count: 2 });
    await waitUntil("the node was asked", () => api().node.countCalls("snapshot") === 1);
    expect(await detail(id)).toMatchObject({ state: "paused", pauseMode: "full" });
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(409);
    const connect = api().call("POST", `/v2/sandboxes/${id}/connect`);
    api().node.snapshot = "ok";
    api().node.release();
    const answer = await forking;
    expect(answer.status).toBe(201);
    expect(answer.body.map((each: object) => Object.keys(each))).toEqual([["sandbox"], ["sandbox"]]);
    expect((await connect).status).toBe(201);
    await waitUntil("no image is left", () => api().node.images.size === 0);
  });

  it("fail each by itself", async () => {
    const id = await api().create();
    api().node.create = Code.Internal;
    const answer = await fork(id, { count: 2 });
    expect(answer.status).toBe(201);
    const error = { code: 500, message: expect.stringMatching(/^Failed to place sandbox/), error_code: "sandbox_create_failed" };
    expect(answer.body).toEqual([{ error }, { error }]);
    expect(answer.text).not.toContain("secret");
    await waitUntil("no image is left", () => api().node.images.size === 0);
    expect(await detail(id)).toMatchObject({ state: "running" });
  });

  it("fail as a whole when the sandbox can't be forked", async () => {
    const id = await api().create();
    for (const [body, message] of [
      [{ count: 0 }, "Count must be at least 1"],
      [{ count: 101 }, "Count cannot be greater than 100"],
      [{ count: 1.5 }, /^validation error/],
      [{ timeout: -1 }, /^validation error/],
      [{ timeout: 0 }, "Timeout must be greater than 0"],
      [{ timeout: 86_401 }, "Timeout cannot be greater than 24 hours"],
    ] as const) {
      expect((await fork(id, body)).body).toEqual({
        code: 400,
        message: typeof message === "string" ? message : expect.stringMatching(message),
      });
    }
    expect((await fork("iunknown")).status).toBe(404);
    expect((await api().call("POST", `/sandboxes/${id}/fork`, { key: api().otherKey })).status).toBe(404);
    api().node.snapshot = Code.ResourceExhausted;
    const busy = await fork(id);
    expect(busy.status).toBe(503);
    expect(busy.headers["should-retry"]).toBe("true");
    api().node.snapshot = Code.Internal;
    const failed = await fork(id);
    expect(failed.status).toBe(500);
    expect(failed.headers["should-retry"]).toBe("false");
    expect(api().node.held.size).toBe(1);
    expect(await detail(id)).toMatchObject({ state: "running" });
  });
});
