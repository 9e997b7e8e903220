// Signed file URLs that do not name their sandbox: their target, their failures, and the limit for each address.

import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { parseSandboxId } from "@skerry/wire";
import { describe, expect, test } from "vitest";
import type { FindSigner } from "../src/index.ts";
import { type Answer, fetchThrough, hostOf, RawClient, readAnswer, responseTo } from "./client.ts";
import { createWorld, type Reach, SANDBOX_ID, type World, type WorldConfig } from "./parts.ts";

const AGENT = 49983;
const HOST = "localhost:4681";
const INVALID = { status: 401, body: JSON.stringify({ code: 401, message: "invalid signature" }) };

function signatureOf(text: string): string {
  return `v1_${createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;
}

const VALID = signatureOf("valid");

function urlOf(signature: string, rest = "path=a.txt"): string {
  return `/files?${rest}&signature=${encodeURIComponent(signature)}`;
}

/** Knows one signature, which the only sandbox made. Records every lookup. */
function signers(): { readonly searched: string[]; readonly findSigner: FindSigner } {
  const searched: string[] = [];
  return {
    searched,
    async findSigner({ signature }) {
      searched.push(signature);
      return signature === VALID ? parseSandboxId(SANDBOX_ID) : undefined;
    },
  };
}

type Sent = Parameters<typeof fetchThrough>[2];

async function open(world: World, path: string, options: Sent = {}): Promise<Answer> {
  return await fetchThrough(world.port, AGENT, { path, ...options, headers: { host: HOST, ...(options.headers as object) } });
}

const short = ({ status, body }: Answer) => ({ status, body: body.toString() });

/** Everything that a client can see of a response, except the date. */
function visible({ status, statusMessage, rawHeaders, body }: Answer): unknown {
  const dateAt = rawHeaders.indexOf("Date");
  return { status, statusMessage, headers: rawHeaders.filter((_, at) => at !== dateAt + 1), body: body.toString() };
}

async function startWorld(reach: Reach = "direct", config: Partial<WorldConfig> = {}) {
  const { searched, findSigner } = signers();
  const world = await createWorld(reach, { findSigner, now: () => 0, ...config });
  return { world, searched, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

describe.each<Reach>(["direct", "connect"])("signed URLs over a %s dial", (reach) => {
  test("lead to the sandbox whose token made the signature, and arrive as they were sent", async () => {
    await using started = await startWorld(reach);
    const { world, searched } = started;
    await world.serve(AGENT, (req, res) => void req.pipe(res.writeHead(200, { Seen: `${req.method} ${req.headers.host} ${req.url}` })));
    for (const host of [HOST, "127.0.0.1:4681", "[::1]:4681", "sandboxes.example.com", "skerry-edge.example.com"]) {
      const answer = await open(world, urlOf(VALID), { headers: { host } });
      expect([answer.status, answer.headers.seen]).toEqual([200, `GET ${host} ${urlOf(VALID)}`]);
    }
    const upload = await open(world, urlOf(VALID), { method: "POST", body: "x".repeat(3_000_000) });
    expect([upload.status, upload.body.length]).toEqual([200, 3_000_000]);
    expect(searched).toEqual([VALID]);
  });

  test("an upload is not read before the sandbox is found", async () => {
    const asked = Promise.withResolvers<void>();
    const found = Promise.withResolvers<void>();
    const findSigner: FindSigner = async () => {
      asked.resolve();
      await found.promise;
      return parseSandboxId(SANDBOX_ID);
    };
    await using world = await createWorld(reach, { findSigner });
    await world.serve(AGENT, (req, res) => void req.pipe(res));
    const client = new RawClient(world.port);
    client.send(`POST ${urlOf(VALID)} HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`);
    await asked.promise;
    expect([world.sandboxes.dials, client.received]).toEqual([0, ""]);
    found.resolve();
    await client.until("100 Continue");
    await client.send("body").until("\r\nbody");
    client.socket.destroy();
  });

  test("every failure looks the same, and none shows an id", async () => {
    await using started = await startWorld(reach);
    const { world } = started;
    await world.serve(AGENT, (_req, res) => res.end("there"));
    const failures = [await open(world, urlOf(signatureOf("other"))), await open(world, urlOf("garbage"))];
    failures.push(await open(world, urlOf(signatureOf("expired"), "path=a&signature_expiration=1")));
    failures.push(await open(world, urlOf(signatureOf("upload")), { method: "POST", body: "sent" }));
    expect((await open(world, urlOf(VALID))).body.toString()).toBe("there");
    world.sandboxes.kill(SANDBOX_ID);
    failures.push(await open(world, urlOf(VALID)), await open(world, urlOf(VALID), { headers: { "x-access-token": "token" } }));
    for (const failure of failures) {
      expect(short(failure)).toEqual(INVALID);
      expect(visible(failure)).toEqual(visible(failures[0] as Answer));
    }
  });

  test("an agent that does not answer is a 502 without an id", async () => {
    await using started = await startWorld(reach);
    const { world } = started;
    const closed = await open(world, urlOf(VALID));
    await world.serveTcp(AGENT, (socket) => socket.once("data", () => socket.resetAndDestroy()));
    const broken = await open(world, urlOf(VALID));
    await world.serveTcp(AGENT, (socket) => socket.once("data", () => world.sandboxes.kill(SANDBOX_ID)));
    const killed = await open(world, urlOf(VALID));
    const routeFailure = { status: 502, body: "Failed to route request to sandbox" };
    expect([closed, broken, killed].map(short)).toEqual([routeFailure, routeFailure, INVALID]);
  });
});

test("a request that names its sandbox is never looked up by its signature", async () => {
  await using started = await startWorld();
  const { world, searched } = started;
  await world.serve(AGENT, (_req, res) => res.end("there"));
  const headers = { "e2b-sandbox-id": SANDBOX_ID, "e2b-sandbox-port": String(AGENT) };
  expect((await open(world, urlOf(VALID), { headers: { host: hostOf(AGENT) } })).status).toBe(200);
  expect((await open(world, urlOf(VALID), { headers })).status).toBe(200);
  const ill = [
    { "e2b-sandbox-id": SANDBOX_ID },
    { host: `02280-${SANDBOX_ID}.localhost` },
    { "e2b-sandbox-id": "", "e2b-sandbox-port": "1" },
  ];
  for (const named of ill) expect((await open(world, urlOf(VALID), { headers: named })).status).toBe(400);
  for (const path of ["/", "/files?path=a", "/init?signature=x", `/files/compose?signature=${encodeURIComponent(VALID)}`]) {
    expect(short(await open(world, path))).toEqual({ status: 400, body: "Invalid host" });
  }
  expect(searched).toEqual([]);
});

test("scripts of web pages may use signed URLs: their preflights are answered without a search", async () => {
  await using started = await startWorld();
  const { world, searched } = started;
  const origin = "https://app.example.com";
  const asks = { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" };
  const answers = await Promise.all(
    [VALID, signatureOf("other"), "garbage"].map((signature) => open(world, urlOf(signature), { method: "OPTIONS", headers: asks })),
  );
  for (const answer of answers) {
    expect(answer.status).toBe(204);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers": "content-type",
    });
  }
  expect((await open(world, urlOf("garbage"), { headers: { origin } })).headers["access-control-allow-origin"]).toBe("*");
  for (const method of ["HEAD", "PUT", "OPTIONS"]) {
    const answer = await open(world, urlOf(VALID), { method });
    expect([answer.status, answer.headers.allow]).toEqual([405, "GET, POST"]);
  }
  expect(searched).toEqual([]);
});

describe("an address that tries many signatures", () => {
  async function failUntilLimited(world: World, from: Sent): Promise<number> {
    for (let tried = 0; tried < 200; tried++) {
      const { status } = await open(world, urlOf(signatureOf(`guess ${tried}`)), from);
      if (status === 429) return tried;
      expect(status).toBe(401);
    }
    return 200;
  }

  test("is refused, and nobody else is", async () => {
    await using started = await startWorld();
    const { world, searched } = started;
    await world.serve(AGENT, (_req, res) => res.end("there"));
    for (let tried = 0; tried < 200; tried++) expect((await open(world, urlOf(`garbage ${tried}`))).status).toBe(401);
    expect(searched).toEqual([]);
    const attacker = { localAddress: "127.0.0.2" };
    expect(await failUntilLimited(world, attacker)).toBe(60);
    const refused = await open(world, urlOf(VALID), attacker);
    expect([refused.status, Number(refused.headers["retry-after"])]).toEqual([429, 5]);
    expect((await open(world, urlOf(VALID))).status).toBe(200);
    expect((await open(world, urlOf(VALID), attacker)).status, "what the edge knows already costs no attempt").toBe(200);
  });

  test("starts no more searches at once than it has attempts", async () => {
    let searches = 0;
    const end = Promise.withResolvers<undefined>();
    const findSigner = (): Promise<undefined> => {
      searches++;
      return end.promise;
    };
    await using world = await createWorld("direct", { findSigner, now: () => 0 });
    const requests = Array.from({ length: 150 }, (_, index) =>
      httpRequest({ port: world.port, agent: false, path: urlOf(signatureOf(String(index))), headers: { host: HOST } }).end(),
    );
    const answers = requests.map(async (request) => (await readAnswer(await responseTo(request))).status);
    const refused: number[] = [];
    await new Promise<void>((resolve) => {
      for (const answer of answers) answer.then((status) => refused.push(status) === 90 && resolve());
    });
    expect(new Set(refused)).toEqual(new Set([429]));
    expect(searches).toBe(60);
    end.resolve(undefined);
    expect((await Promise.all(answers)).filter((status) => status === 401).length).toBe(searches);
  });

  test("is not blamed when the control plane does not answer", async () => {
    const findSigner: FindSigner = async () => {
      throw new Error("away");
    };
    await using world = await createWorld("direct", { findSigner });
    for (let tried = 0; tried < 100; tried++) {
      expect(short(await open(world, urlOf(VALID)))).toEqual({ status: 502, body: "Failed to route request to sandbox" });
    }
  });

  test("is told from the others behind a trusted proxy, and can't pretend to be another", async () => {
    await using started = await startWorld("direct", { trustedProxies: ["127.0.0.2", "192.0.2.0/24"] });
    const { world } = started;
    const through = (forwardedFor: string) => ({ localAddress: "127.0.0.2", headers: { "x-forwarded-for": forwardedFor } });
    expect(await failUntilLimited(world, through("198.51.100.9, 203.0.113.1, 192.0.2.7"))).toBe(60);
    expect((await open(world, urlOf(signatureOf("a")), through("198.51.100.10, 203.0.113.1"))).status).toBe(429);
    expect((await open(world, urlOf(signatureOf("b")), through("203.0.113.2"))).status).toBe(401);
    const direct = (forwardedFor: string) => ({ localAddress: "127.0.0.3", headers: { "x-forwarded-for": forwardedFor } });
    expect(await failUntilLimited(world, direct("203.0.113.3"))).toBe(60);
    expect((await open(world, urlOf(signatureOf("c")), direct("203.0.113.4"))).status).toBe(429);
  });
});
