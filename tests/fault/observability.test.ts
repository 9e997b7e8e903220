// Webhooks and events while the platform is killed again and again, and while its database is away: nothing is lost, and nothing is done twice.

import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { scaled } from "@skerry/testkit/depth";
import { startPostgres } from "@skerry/testkit/postgres";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

const KILLS = scaled("kills of a platform whose events are counted", { sample: 2, full: 20 });
const OUTAGE_MS = scaled("seconds of an outage of the database", { sample: 3, full: 60 }) * 1000;

/** An endpoint that checks every signature as Standard Webhooks describes, and counts every event. */
class Receiver implements AsyncDisposable {
  readonly #server = createServer(async (request, response) => {
    const body = await text(request);
    const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature } = request.headers;
    const key = Buffer.from(this.secret.replace("whsec_", ""), "base64");
    const expected = `v1,${createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64")}`;
    if (signature === expected) this.#sequences.add((JSON.parse(body) as { sequence: number }).sequence);
    else this.forged.push(body);
    response.writeHead(204).end();
  });
  readonly #sequences = new Set<number>();
  readonly forged: string[] = [];
  secret = "";

  static async listen(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get sequences(): readonly number[] {
    return [...this.#sequences].toSorted((a, b) => a - b);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

interface Change {
  readonly sandboxId: string;
  readonly endAt: number;
}

/** Changes timeouts until it is stopped. Returns those that were answered with success. */
function changing(platform: Platform, sandboxIds: readonly string[]) {
  const done: Change[] = [];
  const refused: { status: number; retryAfter: string | null }[] = [];
  let isOver = false;
  const work = Promise.all(
    sandboxIds.map(async (sandboxId, index) => {
      for (let round = 1; !isOver; round++) {
        const timeout = 3_600 + round + index;
        const answer = await callApi(platform, `/sandboxes/${sandboxId}/timeout`, { body: { timeout } }).catch(() => undefined);
        if (answer?.status === 204) done.push({ sandboxId, endAt: Date.now() + timeout * 1000 });
        else if (answer) refused.push({ status: answer.status, retryAfter: answer.headers.get("retry-after") });
        await sleep(5);
      }
    }),
  );
  return {
    done,
    refused,
    stop: async () => {
      isOver = true;
      await work;
    },
  };
}

const eventsOf = async (platform: Platform) => {
  const events: { sequence: number; id: string; type: string; subject_id: string; request_id?: string }[] = [];
  for (let after = 0; ; ) {
    const page = (await callApi(platform, `/events?after=${after}&limit=100`)).body as typeof events;
    events.push(...page);
    const last = page.at(-1);
    if (!last) return events;
    after = last.sequence;
  }
};

it("a receiver of webhooks finds no gap, and an outage of the database costs nothing but its time", { timeout: 3_600_000 }, async () => {
  await using postgres = await startPostgres();
  await using receiver = await Receiver.listen();
  await using platform = await startPlatform({
    runtime: "runc",
    env: { SKERRY_DATABASE_URL: await postgres.createDatabase("observed"), SKERRY_WEBHOOK_NETWORKS: "127.0.0.1", SKERRY_POOL_SIZE: "0" },
  });
  const hook = (await callApi(platform, "/webhooks", { body: { url: receiver.url, name: "all" } })).body as { secret: string };
  receiver.secret = hook.secret;
  const sandboxes = [await Sandbox.create(clientOf(platform)), await Sandbox.create(clientOf(platform))];
  const ids = sandboxes.map(({ sandboxId }) => sandboxId);
  await sandboxes[0]?.commands.run("python3 -m http.server 8000", { background: true, timeoutMs: 0 });
  const headers = { "E2b-Sandbox-Id": ids[0] ?? "", "E2b-Sandbox-Port": "8000" };
  const served = async () => (await fetch(platform.edgeUrl, { headers })).status;
  await waitUntil("the sandbox serves", async () => (await served().catch(() => 0)) === 200);

  const changes = changing(platform, ids);
  for (let kill = 0; kill < KILLS; kill++) {
    const before = changes.done.length;
    await waitUntil("changes are made", () => changes.done.length > before + 20);
    await platform.kill9();
    await platform.start();
  }
  await changes.stop();

  // The database goes away in the middle of changes.
  const during = changing(platform, ids);
  await waitUntil("changes are made", () => during.done.length > 20);
  // Its route is known to the edge, which was started anew. While nobody can be asked, the edge goes on with the routes that it knows.
  expect(await served()).toBe(200);
  await postgres.crash();
  const awayAt = performance.now();
  const answers = [];
  do {
    for (const [method, path, body] of [
      ["GET", "/v2/sandboxes", undefined],
      ["GET", "/events", undefined],
      ["GET", "/audit", undefined],
      ["POST", "/v2/sandboxes", { templateID: "base" }],
      ["DELETE", `/sandboxes/${ids[1]}`, undefined],
    ] as const) {
      const { status, headers } = await callApi(platform, path, { method, ...(body && { body }) });
      answers.push([status, headers.get("retry-after")]);
    }
    expect(await served(), "a running sandbox keeps serving").toBe(200);
    await sleep(200);
  } while (performance.now() - awayAt < OUTAGE_MS);
  await during.stop();
  expect(answers.filter(([status, retryAfter]) => status !== 503 || retryAfter !== "1")).toEqual([]);
  await postgres.restart();
  await waitUntil("the API answers again", async () => (await callApi(platform, "/v2/sandboxes")).status === 200);
  const listed = (await callApi(platform, "/v2/sandboxes")).body as { sandboxID: string }[];
  expect(listed.map(({ sandboxID }) => sandboxID).toSorted(), "nothing was created or killed").toEqual(ids.toSorted());
  const afterwards = await Sandbox.create(clientOf(platform));
  await afterwards.kill();

  const events = await eventsOf(platform);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  const requests = events.flatMap(({ request_id }) => request_id ?? []);
  expect(new Set(requests).size, "no request was carried out twice").toBe(requests.length);
  const updates = events.filter(({ type }) => type === "sandbox.lifecycle.updated").length;
  const acknowledged = changes.done.length + during.done.length;
  expect(updates).toBeGreaterThanOrEqual(acknowledged);
  await waitUntil("the receiver has every event", () => receiver.sequences.length >= events.length, 120_000);
  expect(receiver.sequences).toEqual(events.map(({ sequence }) => sequence));
  expect(receiver.forged).toEqual([]);

  // Each change that was acknowledged has its line in the audit log, and no line was lost.
  const lines = (
    await (
      await fetch(`${platform.apiUrl}/audit/export?operation=setSandboxTimeout`, { headers: { "X-API-Key": platform.secrets.apiKey } })
    ).text()
  )
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { outcome: string; request_id?: string; count: number });
  expect(
    lines.filter(({ outcome }) => outcome === "done").length + lines.filter(({ outcome }) => outcome === "unknown").length,
  ).toBeGreaterThanOrEqual(acknowledged);
  const told = new Set(lines.map(({ request_id }) => request_id));
  const untold = events.filter(({ type, request_id }) => type === "sandbox.lifecycle.updated" && !told.has(request_id));
  expect(untold, "every change has its line").toEqual([]);
});
