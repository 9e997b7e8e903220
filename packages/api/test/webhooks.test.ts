import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { WebhookSchema } from "../src/http/routes/webhooks/webhook-bodies.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { failing, ok, Receiver } from "./webhook-receiver.ts";

const timing = { webhookLookMs: 100, webhookTimeoutMs: 1_000, webhookRetryMs: 100, webhookLongestRetryMs: 200, webhookGiveUpMs: 600_000 };

describeOnEachDatabase("webhooks", { inSample: "sqlite", timing, webhookNetworks: ["127.0.0.1"] }, (api) => {
  const call = async (method: string, path: string, body?: object) => await api().call(method, path, body ? { body } : {});
  const hookTo = async (receiver: Receiver, body: object = {}) => {
    const made = await call("POST", "/webhooks", { url: receiver.url, ...body });
    expect(made.status, made.text).toBe(201);
    receiver.secret = made.body.secret;
    return made.body.webhookID as string;
  };
  const get = async (id: string) => (await call("GET", `/webhooks/${id}`)).body;
  const createAndKill = async () => await call("DELETE", `/sandboxes/${await api().create()}`);
  const deliveries = async (id: string) => (await call("GET", `/webhooks/${id}/deliveries`)).body;

  it("are made, read, changed and deleted by their team, and show their secret once", async () => {
    const made = await call("POST", "/webhooks", { url: "https://hooks.example.com/x#y", name: "ci", types: ["sandbox.lifecycle.killed"] });
    expect(made).toMatchObject({ status: 201, headers: { "cache-control": "no-store" } });
    const { secret, ...shown } = made.body;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect([...Value.Errors(WebhookSchema, shown)]).toEqual([]);
    expect(shown).toMatchObject({ name: "ci", url: "https://hooks.example.com/x", enabled: true, cursor: 0, failures: 0, skipped: 0 });
    const path = `/webhooks/${shown.webhookID}`;
    expect((await call("PATCH", path, { enabled: false, types: null, name: "" })).body).toMatchObject({ enabled: false, name: "" });
    expect((await call("PATCH", path, { types: null })).body.types).toBeUndefined();
    const listed = await call("GET", "/webhooks");
    expect(listed.body).toMatchObject([{ webhookID: shown.webhookID, enabled: false }]);
    expect(listed.text).not.toContain("whsec_");
    const renewed = await call("POST", `${path}/secret`);
    expect(renewed.body.secret).toMatch(/^whsec_/);
    expect(renewed.body.secret).not.toBe(secret);
    for (const [method, sub] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/test"],
      ["POST", "/replay"],
      ["POST", "/secret"],
      ["GET", "/deliveries"],
    ] as const) {
      const body = method === "PATCH" ? { body: { name: "stolen" } } : {};
      expect((await api().call(method, path + sub, { key: api().otherKey, ...body })).status, method + sub).toBe(404);
    }
    expect((await call("DELETE", path)).status).toBe(204);
    expect((await call("DELETE", path)).status).toBe(404);
  });

  it("refuse addresses that are no endpoint of anybody else", async () => {
    const wrong = [
      "x",
      "ftp://example.com",
      "https://user:pw@example.com",
      "https://10.0.0.1/",
      "https://169.254.169.254/latest",
      "https://[::1]/",
      "https://[::ffff:10.0.0.1]/",
      "https://[fe80::1]/",
      "https://167772161/",
      "https://0xa.1/",
      "https://0/",
      "http://8.8.8.8/",
      "https://127.0.0.2/",
    ];
    for (const url of wrong) expect((await call("POST", "/webhooks", { url })).status, url).toBe(400);
    expect((await call("POST", "/webhooks", { url: "https://example.com", types: ["x"] })).status).toBe(400);
    for (let count = 0; count < 20; count++) {
      expect((await call("POST", "/webhooks", { url: "https://example.com", enabled: false })).status).toBe(201);
    }
    expect((await call("POST", "/webhooks", { url: "https://example.com" })).status).toBe(429);
  });

  it("get every event from their creation on, signed, with the payload of the list", async () => {
    await using all = await Receiver.listen();
    await using kills = await Receiver.listen();
    await createAndKill();
    const id = await hookTo(all);
    await hookTo(kills, { types: ["sandbox.lifecycle.killed"] });
    for (let count = 0; count < 5; count++) await createAndKill();
    // The first two events may have got their places in the order before the webhook was made, or after it.
    const isWhole = ([first = 0, ...more]: readonly number[]) => more.at(-1) === 12 && more.length === 12 - first;
    await waitUntil("all have come", () => isWhole(all.sequences) && kills.accepted.length >= 5);
    const first = all.sequences[0] ?? 0;
    expect(first).toBeLessThanOrEqual(3);
    const listed = (await call("GET", "/events?after=0&limit=100")).body;
    expect(all.accepted.map(({ body }) => body).toSorted((a, b) => a.sequence - b.sequence)).toEqual(
      listed.filter(({ sequence }: { sequence: number }) => sequence >= first),
    );
    for (const { id: messageId, body } of all.accepted) expect(messageId).toBe(body.id);
    expect(kills.accepted.every(({ body }) => body.type === "sandbox.lifecycle.killed")).toBe(true);
    expect([...all.forged, ...kills.forged]).toEqual([]);
    await expect.poll(async () => (await get(id)).cursor).toBe(12);
    expect(await get(id)).toMatchObject({ failures: 0, lastDeliveredAt: expect.any(String) });
    expect(await deliveries(id)).toEqual([]);
  });

  it("are sent again what failed, with the same id, and nothing else", async () => {
    await using receiver = await Receiver.listen();
    const id = await hookTo(receiver);
    const refused = new Set<string>();
    // Each event fails once.
    receiver.answer = (response, received) => {
      if (refused.has(received.id)) return ok(response, received);
      refused.add(received.id);
      failing(response, received);
    };
    for (let count = 0; count < 4; count++) await createAndKill();
    await waitUntil("all were accepted", () => receiver.sequences.length === 8);
    expect(receiver.sequences).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(receiver.requests.map((one) => one.id)).size).toBe(8);
    await expect.poll(async () => await deliveries(id)).toEqual([]);
    await expect.poll(async () => await get(id)).toMatchObject({ failures: 0, lastError: expect.stringContaining("500") });
  });

  it("are not held up by one event that their endpoint never takes, which becomes a dead letter and can be sent again", async () => {
    await using quick = await api().createSecond({ timing: { ...timing, webhookGiveUpMs: 300 }, webhookNetworks: ["127.0.0.1"] });
    await api().api.close();
    const { url } = await quick.listen();
    api().url = url;
    await using receiver = await Receiver.listen();
    const id = await hookTo(receiver);
    receiver.answer = (response, received) => (received.body.sequence === 2 ? failing : ok)(response, received);
    for (let count = 0; count < 3; count++) await createAndKill();
    await waitUntil("the others were accepted", () => receiver.sequences.length === 5);
    // Further successes, so that only the event fails and not the endpoint.
    await expect
      .poll(async () => {
        await createAndKill();
        return await deliveries(id);
      })
      .toEqual([expect.objectContaining({ sequence: 2, state: "dead", attempts: expect.any(Number), error: "the endpoint answered 500" })]);
    expect(await get(id)).toMatchObject({ enabled: true });
    receiver.answer = ok;
    expect((await call("POST", `/webhooks/${id}/replay`)).status).toBe(200);
    await waitUntil("it came", () => receiver.sequences.includes(2));
    await expect.poll(async () => await deliveries(id)).toEqual([]);
  });

  it("wait while their endpoint is down, try it with one event at a time, and then get all that happened", async () => {
    await using receiver = await Receiver.listen();
    const id = await hookTo(receiver);
    receiver.answer = failing;
    await createAndKill();
    await expect.poll(async () => (await get(id)).failures).toBeGreaterThan(3);
    const tries = receiver.requests.length;
    for (let count = 0; count < 30; count++) await createAndKill();
    receiver.mostOpen = 0;
    const failures = (await get(id)).failures;
    await expect.poll(async () => (await get(id)).failures).toBeGreaterThan(failures + 2);
    expect(receiver.mostOpen).toBe(1);
    expect((await deliveries(id)).length).toBeLessThan(40);
    expect(tries).toBeGreaterThan(0);
    receiver.answer = ok;
    await waitUntil("all have come", () => receiver.sequences.length === 62);
    expect(receiver.mostOpen).toBeLessThanOrEqual(10);
    await expect.poll(async () => await get(id)).toMatchObject({ failures: 0, cursor: 62, skipped: 0 });
  });

  it("are disabled when their endpoint is gone, and go on where they were when they are enabled", async () => {
    await using receiver = await Receiver.listen();
    const id = await hookTo(receiver);
    receiver.answer = (response) => void response.writeHead(410).end();
    await createAndKill();
    await expect.poll(async () => await get(id)).toMatchObject({ enabled: false, disabledReason: "gone" });
    const before = receiver.requests.length;
    await createAndKill();
    receiver.answer = ok;
    expect((await call("PATCH", `/webhooks/${id}`, { enabled: true })).body.disabledReason).toBeUndefined();
    await waitUntil("the later ones came", () => receiver.sequences.includes(4));
    await call("POST", `/webhooks/${id}/replay`, { after: 0 });
    await waitUntil("all came", () => receiver.sequences.length === 4);
    expect(receiver.requests.length).toBeGreaterThan(before);
    expect((await call("POST", `/webhooks/${id}/replay`, { after: 1_000 })).status).toBe(400);
  });

  it("bear endpoints that hang, redirect, send gigabytes or no HTTP, and none of them delays another", async () => {
    await using good = await Receiver.listen();
    await using hanging = await Receiver.listen();
    await using redirecting = await Receiver.listen();
    await using endless = await Receiver.listen();
    const secret = createServer((_request, response) => response.end("secret"));
    await new Promise<void>((resolve) => secret.listen(0, "127.0.0.1", resolve));
    let reached = 0;
    secret.on("request", () => {
      reached += 1;
    });
    hanging.answer = () => {};
    redirecting.answer = (response) =>
      void response.writeHead(307, { location: `http://127.0.0.1:${(secret.address() as AddressInfo).port}/` }).end();
    let sent = 0;
    endless.answer = (response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 20))) sent += 1;
      };
      response.on("drain", more);
      more();
    };
    const ids = [await hookTo(hanging), await hookTo(redirecting), await hookTo(endless)];
    await hookTo(good);
    for (let count = 0; count < 5; count++) await createAndKill();
    await waitUntil("the good one has all", () => good.sequences.length === 10);
    const errors = async () => (await Promise.all(ids.map(get))).map(({ lastError }) => lastError);
    await expect
      .poll(errors)
      .toEqual([
        "the endpoint did not answer in time",
        "the endpoint answered 307, and redirects are not followed",
        expect.stringMatching(/longer than 65536 bytes/),
      ]);
    expect(reached).toBe(0);
    expect(sent).toBeLessThan(200);
    secret.closeAllConnections();
    secret.close();
  });

  it("can be tried, and say what went wrong", async () => {
    await using receiver = await Receiver.listen();
    const id = await hookTo(receiver, { enabled: false });
    const test = async () => (await call("POST", `/webhooks/${id}/test`)).body;
    expect(await test()).toEqual({ ok: true, status: 204, durationMs: expect.any(Number) });
    expect(receiver.accepted).toMatchObject([{ body: { type: "webhook.test" } }]);
    expect(receiver.forged).toEqual([]);
    receiver.answer = failing;
    expect(await test()).toMatchObject({ ok: false, status: 500, error: "the endpoint answered 500" });
    await call("PATCH", `/webhooks/${id}`, { url: "https://no-such-name.invalid/" });
    expect(await test()).toMatchObject({ ok: false, error: expect.stringMatching(/^the request failed: E/) });
    expect(await deliveries(id)).toEqual([]);
  });

  it("are delivered by another process when the one that did has stopped, without a gap", async () => {
    await using second = await api().createSecond({ timing, webhookNetworks: ["127.0.0.1"] });
    await using receiver = await Receiver.listen();
    await hookTo(receiver);
    await createAndKill();
    await waitUntil("the first ones came", () => receiver.sequences.length === 2);
    const { url } = await second.listen();
    await api().api.close();
    api().url = url;
    await createAndKill();
    await waitUntil("the next ones came", () => receiver.sequences.length === 4);
    expect(receiver.accepted.length).toBe(4);
  });
});
