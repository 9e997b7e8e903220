import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { Secret } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";
import { AGENT_PORT } from "@skerry/wire";
import { RouteRefusalSchema, RouteService } from "@skerry/wire/control";
import { expect, it } from "vitest";
import { accessTokenOf } from "../src/keys/credential.ts";
import type { ApiHarness } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const WAKING = { autoPause: true, autoResume: { enabled: true } };
const MINUTE = 60_000;

type Ask = { wake?: boolean; port?: number; accessToken?: string; trafficToken?: string; probe?: boolean; obeysIngress?: boolean };

/** The route, or the reason why there is none. */
async function ask(api: ApiHarness, sandboxId: string, about: Ask = { wake: true, port: 3000 }, signal?: AbortSignal) {
  const routes = createClient(
    RouteService,
    createRouterTransport(({ service }) => {
      service(RouteService, api.api.routeService);
    }),
  );
  try {
    const { nodeId } = await routes.findRoute({ sandboxId, obeysIngress: true, ...about }, signal ? { signal } : {});
    return nodeId;
  } catch (error) {
    const failure = ConnectError.from(error);
    const [detail] = failure.findDetails(RouteRefusalSchema);
    return { code: failure.code, message: failure.rawMessage, ...(detail && { ...detail, $typeName: undefined }) };
  }
}

const paused = { code: Code.NotFound, state: "paused" };

describeOnEachDatabase("routes", { inSample: "sqlite" }, (api) => {
  const find = async (id: string) => await api().store.sandboxes.find(id);
  const resumes = (id: string) => api().node.countCalls("resume", id);

  async function createPaused(body: object = WAKING, pause: object = {}): Promise<string> {
    const id = await api().create({ ...body });
    expect((await api().call("POST", `/sandboxes/${id}/pause`, { body: pause })).status).toBe(204);
    return id;
  }

  it("a sandbox that traffic may wake is resumed, for five minutes at least or as long as it was created for", async () => {
    for (const [timeout, livesMs] of [
      [30, 5 * MINUTE],
      [600, 10 * MINUTE],
    ] as const) {
      const id = await createPaused({ ...WAKING, timeout });
      const before = Date.now();
      expect(await ask(api(), id)).toBe("node1");
      const woken = await find(id);
      expect(woken?.state).toBe("running");
      expect(woken?.startedAt).toBeGreaterThanOrEqual(before);
      expect((woken?.endAt ?? 0) - (woken?.startedAt ?? 0)).toBe(livesMs);
      expect((await api().store.sandboxes.listEvents(id)).filter(({ event }) => event === "resume")).toMatchObject([{ actor: "traffic" }]);
    }
  });

  it("who does not ask for it wakes nothing", async () => {
    const id = await createPaused();
    expect(await ask(api(), id, {})).toMatchObject(paused);
    expect(resumes(id)).toBe(0);
  });

  it("many who ask at once wake it once", async () => {
    const id = await createPaused();
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(api(), id)));
    expect(answers).toEqual(Array.from({ length: 20 }, () => "node1"));
    expect(resumes(id)).toBe(1);
  });

  it("those that were not made for it, or have no memory to come back to, stay paused", async () => {
    for (const id of [
      await createPaused({ autoPause: true }),
      await createPaused({ autoPause: true, autoResume: { enabled: false } }),
      await createPaused(WAKING, { memory: false }),
    ]) {
      expect(await ask(api(), id)).toMatchObject(paused);
      expect([(await find(id))?.state, resumes(id)]).toEqual(["paused", 0]);
    }
  });

  it("on the agent's port the sandbox's token is asked for", async () => {
    const id = await createPaused();
    const port = AGENT_PORT;
    const token = accessTokenOf(new Secret("seed"), id);
    for (const accessToken of ["", "wrong", `${token} `, `${token}, ${token}`]) {
      expect(await ask(api(), id, { wake: true, port, accessToken })).toMatchObject({ code: Code.PermissionDenied });
    }
    expect([(await find(id))?.state, resumes(id)]).toEqual(["paused", 0]);
    expect(await ask(api(), id, { wake: true, port, accessToken: token, probe: true })).toMatchObject(paused);
    expect(await ask(api(), id, { wake: true, port, accessToken: token })).toBe("node1");
  });

  it("who asks while it is being paused gets it when it was, and is woken", async () => {
    const id = await api().create({ ...WAKING });
    api().node.pause = "hang";
    const pause = api().call("POST", `/sandboxes/${id}/pause`, { body: {} });
    await waitUntil("the pause began", async () => (await find(id))?.state === "pausing");
    const asked = ask(api(), id);
    const looked = await ask(api(), id, {});
    expect(looked).toMatchObject(paused);
    api().node.pause = "ok";
    api().node.release();
    expect((await pause).status).toBe(204);
    expect(await asked).toBe("node1");
    expect(resumes(id)).toBe(1);
  });

  it("one that is resumed by its owner is waited for, whatever it was made for", async () => {
    const id = await createPaused({ autoPause: true });
    api().node.resume = "hang";
    const connected = api().call("POST", `/v2/sandboxes/${id}/connect`);
    await waitUntil("the resume began", async () => (await find(id))?.state === "resuming");
    const asked = ask(api(), id);
    api().node.resume = "ok";
    api().node.release();
    expect((await connected).status).toBe(201);
    expect(await asked).toBe("node1");
    expect(resumes(id)).toBe(1);
  });

  it("one whose time is over but that nobody has paused yet goes on", async () => {
    const id = await api().create({ ...WAKING });
    const { store } = api();
    await store.sandboxes.setEnd(id, { endAt: Date.now() - 1, now: Date.now() - 10, onlyLater: false });
    expect(await ask(api(), id)).toBe("node1");
    expect((await find(id))?.endAt).toBeGreaterThan(Date.now() + 4 * MINUTE);
  });

  it("a resume that fails says so, leaves it paused, and is tried again by the next who asks", async () => {
    const id = await createPaused();
    for (const [failure, code] of [
      [Code.ResourceExhausted, Code.Unavailable],
      [Code.Unavailable, Code.Unavailable],
      [Code.Internal, Code.Unavailable],
    ] as const) {
      api().node.resume = failure;
      const answer = await ask(api(), id);
      expect(answer).toMatchObject({ code, state: "paused" });
      expect(JSON.stringify(answer)).not.toContain("secret");
      await waitUntil("it is paused", async () => (await find(id))?.state === "paused");
    }
    api().node.resume = "ok";
    expect(await ask(api(), id)).toBe("node1");
  });

  it("one who no longer waits ends no resume", async () => {
    const id = await createPaused();
    api().node.resume = "hang";
    const leaving = new AbortController();
    const leaver = ask(api(), id, { wake: true, port: 3000 }, leaving.signal);
    const stays = ask(api(), id);
    await waitUntil("the resume began", async () => (await find(id))?.state === "resuming");
    leaving.abort();
    expect(await leaver).toMatchObject({ code: Code.Canceled });
    api().node.resume = "ok";
    api().node.release();
    expect(await stays).toBe("node1");
    expect(resumes(id)).toBe(1);
  });

  it("what ended says when and why, and what never was says nothing", async () => {
    const id = await api().create({ ...WAKING });
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    const endedAt = new Date((await find(id))?.endedAt ?? 0).toISOString();
    expect(await ask(api(), id)).toMatchObject({ code: Code.NotFound, state: "ended", endReason: "request", endedAt });
    for (const unknown of ["iunknown", "../x", "", "a\0b"]) {
      expect(await ask(api(), unknown)).toMatchObject({ code: Code.NotFound, state: "unknown", endReason: "", endedAt: "" });
    }
  });
});
