import { createHash } from "node:crypto";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { AGENT_PORT } from "@skerry/wire";
import { RouteService } from "@skerry/wire/control";
import { expect, it } from "vitest";
import type { ApiHarness } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const PRIVATE = { network: { allowPublicTraffic: false } };
const WAKING = { autoPause: true, autoResume: { enabled: true } };

function routesOf(api: ApiHarness) {
  const transport = createRouterTransport(({ service }) => {
    service(RouteService, api.api.routeService);
  });
  return createClient(RouteService, transport);
}

async function routeOf(api: ApiHarness, sandboxId: string, about: object = {}) {
  return await routesOf(api).findRoute({ sandboxId, obeysIngress: true, ...about });
}

async function codeOf(route: Promise<unknown>): Promise<Code | undefined> {
  return await route.then(
    () => undefined,
    (error) => ConnectError.from(error).code,
  );
}

const sha256 = (text: string) => new Uint8Array(createHash("sha256").update(text).digest());

describeOnEachDatabase("incoming traffic", { inSample: "sqlite" }, (api) => {
  const create = (body: object, options: object = {}) =>
    api().call("POST", "/v2/sandboxes", { body: { templateID: "base", ...body }, ...options });

  it("a private sandbox has a traffic token, the same in every response, and its details do not show it", async () => {
    const { body } = await create(PRIVATE);
    const token = body.trafficAccessToken;
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(token).not.toBe(body.envdAccessToken);
    const path = `/sandboxes/${body.sandboxID}`;
    expect((await api().call("POST", `/v2${path}/connect`)).body.trafficAccessToken).toBe(token);
    expect((await api().call("POST", `${path}/pause`)).status).toBe(204);
    expect((await api().call("POST", `${path}/resume`, { body: {} })).body.trafficAccessToken).toBe(token);
    const detail = (await api().call("GET", path)).body;
    expect(detail.network).toEqual({ allowPublicTraffic: false });
    expect(JSON.stringify([detail, (await api().call("GET", "/v2/sandboxes")).body])).not.toContain(token);
  });

  it("the route names one limit group for all sandboxes of a team, and another for those of another team", async () => {
    const groupOf = async (options: object) => (await routeOf(api(), (await create({}, options)).body.sandboxID)).limitGroup;
    const [first, second, foreign] = [await groupOf({}), await groupOf({}), await groupOf({ key: api().otherKey })];
    expect(first).not.toBe("");
    expect([second === first, foreign === first, foreign === ""]).toEqual([true, false, false]);
  });

  it("other sandboxes have none", async () => {
    for (const network of [undefined, {}, { allowPublicTraffic: true }, { allowPublicTraffic: null }, { httpsPorts: [443] }]) {
      const { status, body } = await create({ network });
      expect([status, body.trafficAccessToken]).toEqual([201, undefined]);
    }
  });

  it("forks have tokens of their own, and sandboxes from a snapshot have what they ask for", async () => {
    const { body } = await create(PRIVATE);
    const forked = await api().call("POST", `/sandboxes/${body.sandboxID}/fork`, { body: { count: 2 } });
    const forks = forked.body.map(({ sandbox }: { sandbox: object }) => sandbox);
    const tokens = [body, ...forks].map(({ trafficAccessToken }) => trafficAccessToken);
    expect(new Set(tokens).size).toBe(3);
    for (const token of tokens) expect(token).toMatch(/^[0-9a-f]{64}$/);
    for (const fork of forks) {
      const { ingress } = await routeOf(api(), fork.sandboxID);
      expect(ingress?.trafficTokenSha256).toEqual(sha256(fork.trafficAccessToken));
    }
    const { snapshotID } = (await api().call("POST", `/sandboxes/${body.sandboxID}/snapshots`, { body: {} })).body;
    expect((await create({ templateID: snapshotID })).body.trafficAccessToken).toBeUndefined();
    const again = await create({ templateID: snapshotID, ...PRIVATE });
    expect(tokens).not.toContain(again.body.trafficAccessToken);
  });

  it("a repeated create gets the token again, which nothing has stored", async () => {
    const options = { headers: { "Idempotency-Key": "once" } };
    const first = await create(PRIVATE, options);
    expect((await create(PRIVATE, options)).body).toEqual(first.body);
    const record = await api().store.idempotency.find(api().teamId, "once");
    expect(JSON.stringify(record)).toContain(first.body.sandboxID);
    expect(JSON.stringify(record)).not.toContain(first.body.trafficAccessToken);
    expect(JSON.stringify(await api().store.sandboxes.find(first.body.sandboxID))).not.toContain(first.body.trafficAccessToken);
  });

  it("older clients must ask for a secure sandbox too", async () => {
    const createV1 = (body: object) => api().call("POST", "/sandboxes", { body: { templateID: "base", ...body } });
    for (const secure of [undefined, false]) {
      expect((await createV1({ ...PRIVATE, secure })).body).toEqual({
        code: 400,
        message: "You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.",
      });
    }
    expect((await createV1({ ...PRIVATE, secure: true })).body.trafficAccessToken).toEqual(expect.any(String));
    expect((await createV1({ network: { allowPublicTraffic: true } })).status).toBe(201);
  });

  it("the route says what the edge must do, and has the token only as a digest", async () => {
    const network = { allowPublicTraffic: false, maskRequestHost: "localhost:${PORT}", httpsPorts: [443, 8443, 443] };
    const { body } = await create({ network });
    const { ingress } = await routeOf(api(), body.sandboxID);
    expect(ingress).toMatchObject({ hostTemplate: "localhost:${PORT}", tlsPorts: [443, 8443] });
    expect(ingress?.trafficTokenSha256).toEqual(sha256(body.trafficAccessToken));
    expect((await api().call("GET", `/sandboxes/${body.sandboxID}`)).body.network).toEqual({ ...network, httpsPorts: [443, 8443] });
    expect((await routeOf(api(), await api().create())).ingress).toBeUndefined();
  });

  it("an edge that would not obey gets no route to a sandbox that needs it", async () => {
    const { body } = await create({ ...PRIVATE, ...WAKING });
    expect(await codeOf(routeOf(api(), body.sandboxID, { obeysIngress: false }))).toBe(Code.FailedPrecondition);
    expect(await codeOf(routeOf(api(), await api().create(), { obeysIngress: false }))).toBeUndefined();
  });

  it("only requests with its token wake a private sandbox, on every port but the agent's", async () => {
    const { body } = await create({ ...PRIVATE, ...WAKING });
    const { sandboxID: id, trafficAccessToken: trafficToken, envdAccessToken: accessToken } = body;
    const other = (await create(PRIVATE)).body;
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    const attempts = [
      { port: 3000 },
      { port: 3000, trafficToken: accessToken },
      { port: 3000, trafficToken: other.trafficAccessToken },
      { port: 3000, trafficToken: `${trafficToken}, ${trafficToken}` },
      { port: 3000, accessToken },
      { port: AGENT_PORT, trafficToken },
      { port: AGENT_PORT, trafficToken: accessToken, accessToken: trafficToken },
    ];
    for (const about of attempts) {
      expect([about, await codeOf(routeOf(api(), id, { wake: true, ...about }))]).toEqual([about, Code.PermissionDenied]);
    }
    expect(api().node.countCalls("resume", id)).toBe(0);
    expect((await routeOf(api(), id, { wake: true, port: 3000, trafficToken })).nodeId).toBe("node1");
  });

  it("refuses hosts and ports that cannot be", async () => {
    const refused: [object, RegExp][] = [
      [{ maskRequestHost: "a b" }, /^mask request host is not valid: it must be a host name/],
      [{ maskRequestHost: "" }, /^mask request host is not valid: it is empty$/],
      [{ maskRequestHost: "a\r\nX: y" }, /^mask request host is not valid/],
      [{ maskRequestHost: "a:70000" }, /^mask request host is not valid: its port/],
      [{ httpsPorts: [AGENT_PORT] }, /49983/],
      [{ httpsPorts: [0] }, /httpsPorts/],
      [{ httpsPorts: [65_536] }, /httpsPorts/],
      [{ httpsPorts: [1.5] }, /httpsPorts/],
      [{ allowPublicTraffic: "no" }, /allowPublicTraffic/],
    ];
    for (const [network, message] of refused) {
      expect(await create({ network })).toMatchObject({ status: 400, body: { code: 400, message: expect.stringMatching(message) } });
    }
  });
});
