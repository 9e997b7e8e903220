import { createHash } from "node:crypto";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { AGENT_PORT } from "@skerry/wire";
import { RouteService } from "@skerry/wire/control";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { LinkSchema, MadeLinkSchema } from "../src/http/routes/links/link-bodies.ts";
import type { Api } from "../src/index.ts";
import { LinkService } from "../src/links/link-service.ts";
import type { ApiHarness } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const WAKING = { autoPause: true, autoResume: { enabled: true } };
const PRIVATE = { network: { allowPublicTraffic: false } };

interface Made {
  readonly linkID: string;
  readonly token: string;
  readonly url: string;
  readonly expiresAt: string;
}

const proofOf = ({ token }: Pick<Made, "token">) => ({
  linkId: token.split(".")[0] ?? "",
  tokenSha256: new Uint8Array(createHash("sha256").update(token).digest()),
});

function routesOf(api: Api) {
  return createClient(
    RouteService,
    createRouterTransport(({ service }) => {
      service(RouteService, api.routeService);
    }),
  );
}

/** What an edge is told about the link. */
async function ask(api: Api, sandboxId: string, made: Pick<Made, "token">, port = 3000) {
  return (await routesOf(api).findLink({ sandboxId, port, link: proofOf(made) })).link;
}

describeOnEachDatabase("links", { inSample: "both" }, (api) => {
  const create = async (sandboxId: string, body: object = {}, from: ApiHarness = api()): Promise<Made> => {
    const answer = await from.call("POST", `/sandboxes/${sandboxId}/links`, { body: { port: 3000, expiresIn: 600, ...body } });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(Value.Check(MadeLinkSchema, answer.body)).toBe(true);
    return answer.body;
  };
  const listed = async (sandboxId: string) => {
    const answer = await api().call("GET", `/sandboxes/${sandboxId}/links`);
    expect(answer.status, answer.text).toBe(200);
    for (const link of answer.body) expect(Value.Check(LinkSchema, link)).toBe(true);
    return answer;
  };
  const revoke = (sandboxId: string, linkId: string) => api().call("DELETE", `/sandboxes/${sandboxId}/links/${linkId}`);

  it("are made, listed without their tokens, found by what their tokens prove, and revoked in every process", async () => {
    await using second = await api().createSecond();
    const id = await api().create(PRIVATE);
    const before = api().store.clock.now();
    const plain = await create(id);
    expect(plain.token).toMatch(/^lnk_[a-z0-9]{20}\.[A-Za-z0-9_-]{43}$/);
    expect(plain.token.startsWith(`${plain.linkID}.`)).toBe(true);
    expect(plain.url).toBe(`http://3000-${id}.localhost:4681/?skerry-link=${plain.token}`);
    expect(Date.parse(plain.expiresAt)).toBeGreaterThanOrEqual(before + 600_000);
    const full = await create(id, { port: 8080, path: "/a?b=c", methods: ["GET", "HEAD", "GET"], expiresIn: 30 * 24 * 3600 });
    expect(full.url).toBe(`http://8080-${id}.localhost:4681/a?b=c&skerry-link=${full.token}`);
    const list = await listed(id);
    expect(list.body).toEqual([
      expect.objectContaining({ linkID: plain.linkID, port: 3000, path: "/" }),
      expect.objectContaining({ linkID: full.linkID, port: 8080, path: "/a?b=c", methods: ["GET", "HEAD"] }),
    ]);
    for (const { token } of [plain, full]) expect(list.text).not.toContain(token.split(".")[1]);
    for (const process of [api().api, second]) {
      const found = await ask(process, id, plain);
      expect(found).toMatchObject({ methods: [] });
      expect(Number(found?.expiresInMs)).toBeGreaterThan(500_000);
      expect(await ask(process, id, full, 8080)).toMatchObject({ methods: ["GET", "HEAD"] });
    }
    expect((await revoke(id, plain.linkID)).status).toBe(204);
    for (const process of [api().api, second]) expect(await ask(process, id, plain)).toBeUndefined();
    expect(await ask(second, id, full, 8080)).toBeDefined();
    expect((await listed(id)).body).toHaveLength(1);
    for (const unknown of [plain.linkID, "x", "lnk_%00", "a".repeat(300)]) expect((await revoke(id, unknown)).status).toBe(404);
  });

  it("open nothing else: another port, sandbox, secret or link, and never the agent's port", async () => {
    const id = await api().create(PRIVATE);
    const other = await api().create(PRIVATE);
    const [made, others] = [await create(id), await create(other)];
    const routes = routesOf(api().api);
    const { linkId, tokenSha256 } = proofOf(made);
    const wrong = new Uint8Array(32);
    for (const request of [
      { sandboxId: id, port: 3001, link: { linkId, tokenSha256 } },
      { sandboxId: id, port: 0, link: { linkId, tokenSha256 } },
      { sandboxId: other, port: 3000, link: { linkId, tokenSha256 } },
      { sandboxId: "", port: 3000, link: { linkId, tokenSha256 } },
      { sandboxId: id, port: 3000, link: { linkId, tokenSha256: wrong } },
      { sandboxId: id, port: 3000, link: { linkId, tokenSha256: new Uint8Array() } },
      { sandboxId: id, port: 3000, link: { linkId, tokenSha256: tokenSha256.slice(1) } },
      { sandboxId: id, port: 3000, link: { linkId: others.linkID, tokenSha256 } },
      { sandboxId: id, port: 3000, link: { linkId: "", tokenSha256 } },
      { sandboxId: id, port: 3000, link: { linkId: `${linkId.slice(0, -1)}\0`, tokenSha256 } },
      { sandboxId: id, port: 3000 },
    ]) {
      expect([request, (await routes.findLink(request)).link]).toEqual([request, undefined]);
    }
    expect(await ask(api().api, id, made)).toBeDefined();
    // Even if the database had such a link.
    const { store } = api();
    const links = new LinkService({ links: store.links, clock: store.clock, origin: { scheme: "http", domain: "x" } });
    const about = { sandboxId: id, port: AGENT_PORT, path: "/", methods: undefined, lifeMs: 60_000 };
    expect(await ask(api().api, id, await links.create(api().teamId, about), AGENT_PORT)).toBeUndefined();
  });

  it("expire, and make room for others then", async () => {
    const id = await api().create();
    const { store, teamId } = api();
    let now = store.clock.now();
    const links = new LinkService({
      links: store.links,
      clock: { now: () => now },
      origin: { scheme: "https", domain: "x.example", pathHost: "paths.example" },
      maxLinks: 2,
    });
    const about = { sandboxId: id, port: 3000, path: "/", methods: undefined };
    const short = await links.create(teamId, { ...about, lifeMs: 1_000 });
    expect(short.url).toMatch(/^https:\/\/3000-\w+\.x\.example\/\?skerry-link=lnk_/);
    expect(short.pathUrl).toBe(`https://paths.example/s/${id}/3000/?skerry-link=${short.token}`);
    await links.create(teamId, { ...about, lifeMs: 60_000 });
    await expect(links.create(teamId, { ...about, lifeMs: 60_000 })).rejects.toMatchObject({
      publicMessage: "The sandbox has 2 links, and may have no more. Revoke one, or wait until one expires",
    });
    const { linkId, tokenSha256: digest } = proofOf(short);
    now += 999;
    expect(await links.find(id, 3000, { linkId, digest })).toBeDefined();
    now += 1;
    expect(await links.find(id, 3000, { linkId, digest })).toBeUndefined();
    expect(await links.list(id)).toHaveLength(1);
    await links.create(teamId, { ...about, lifeMs: 60_000 });
    expect(await store.links.find(linkId)).toBeUndefined();
    // Many at once count each other.
    const third = await api().create();
    const many = await Promise.allSettled(
      Array.from({ length: 8 }, () => links.create(teamId, { ...about, sandboxId: third, lifeMs: 60_000 })),
    );
    expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  });

  it("wake a private sandbox, each by its own port, while others do not", async () => {
    const id = await api().create({ ...PRIVATE, ...WAKING });
    const [made, revoked] = [await create(id), await create(id)];
    const foreign = await create(await api().create(PRIVATE));
    expect((await revoke(id, revoked.linkID)).status).toBe(204);
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    const wake = async (link: Made | undefined, port = 3000) => {
      try {
        const proof = link ? { link: proofOf(link) } : {};
        return (await routesOf(api().api).findRoute({ sandboxId: id, wake: true, port, obeysIngress: true, ...proof })).nodeId;
      } catch (error) {
        return ConnectError.from(error).code;
      }
    };
    for (const [link, port] of [[undefined], [revoked], [foreign], [made, 3001], [made, AGENT_PORT]] as const) {
      expect(await wake(link, port)).toBe(Code.PermissionDenied);
    }
    expect(api().node.countCalls("resume", id)).toBe(0);
    expect((await listed(id)).body).toHaveLength(1);
    expect(await wake(made)).toBe("node1");
  });

  it("are not taken over by forks and snapshots, and go with their sandbox", async () => {
    const id = await api().create(PRIVATE);
    const made = await create(id);
    const forked = await api().call("POST", `/sandboxes/${id}/fork`, { body: { count: 1 } });
    const fork = forked.body[0].sandbox.sandboxID;
    const { snapshotID } = (await api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} })).body;
    const again = await api().create({ templateID: snapshotID });
    for (const clone of [fork, again]) {
      expect((await listed(clone)).body).toEqual([]);
      expect(await ask(api().api, clone, made)).toBeUndefined();
    }
    expect(await ask(api().api, id, made)).toBeDefined();
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect(await api().store.links.find(made.linkID)).toBeUndefined();
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["POST", "", { port: 3000, expiresIn: 60 }],
      ["DELETE", `/${made.linkID}`, undefined],
    ] as const) {
      const answer = await api().call(method, `/sandboxes/${id}/links${path}`, body ? { body } : {});
      expect([method, answer.status]).toEqual([method, 404]);
    }
  });

  it("refuses what cannot be a link", async () => {
    const id = await api().create();
    const refused: [object, RegExp][] = [
      [{ port: AGENT_PORT }, /49983 is the agent's/],
      [{ port: 0 }, /port/],
      [{ port: 65_536 }, /port/],
      [{ port: "3000" }, /port/],
      [{ expiresIn: 0 }, /expiresIn/],
      [{ expiresIn: 30 * 24 * 3600 + 1 }, /expiresIn/],
      [{ expiresIn: undefined }, /expiresIn/],
      [{ methods: [] }, /methods/],
      [{ methods: ["CONNECT"] }, /methods/],
      [{ methods: ["get"] }, /methods/],
      ...["", "a", "//evil.example/", "/\\evil.example", "/a b", "/a#b", "/ä", "/a\r\nX: y", `/${"a".repeat(2_048)}`].map(
        (path): [object, RegExp] => [{ path }, /path must begin with one slash/],
      ),
      [{ path: "/?skerry-link=x" }, /must not have the parameter/],
    ];
    for (const [body, message] of refused) {
      const answer = await api().call("POST", `/sandboxes/${id}/links`, { body: { port: 3000, expiresIn: 60, ...body } });
      expect([body, answer.status, answer.body.message]).toEqual([body, 400, expect.stringMatching(message)]);
    }
    expect((await listed(id)).body).toEqual([]);
  });
});
