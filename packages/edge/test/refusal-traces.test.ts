// Requests that try a way around the checks leave a trace in the log, without what they show.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { hostOf, RawClient } from "./client.ts";
import { logToFile } from "./log-file.ts";
import { createWorld, SANDBOX_ID } from "./parts.ts";

const AGENT = 49983;
const PATH_HOST = "paths.skerry.test";
const SIGNATURE = `v1_${createHash("sha256").update("foreign").digest("base64").replace(/=+$/, "")}`;
const LINK = `lnk_${"a".repeat(22)}.${"5ec4e7".repeat(7)}x`;
const SECRETS = [SIGNATURE, encodeURIComponent(SIGNATURE), LINK.split(".")[1] ?? "", "private-path"];

const at = (host: string, path = "/private-path", more = "") => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;
const named = (id: string, port: string) => `E2b-Sandbox-Id: ${id}\r\nE2b-Sandbox-Port: ${port}\r\n`;
const sandbox = { sandbox_id: SANDBOX_ID, port: AGENT };

const TRICKS: readonly (readonly [name: string, request: string, status: number, line: object])[] = [
  ["a port with a leading zero", at(`080-${SANDBOX_ID}.skerry.test`), 400, { reason: "target invalid" }],
  ["a port that is too large", at(`65536-${SANDBOX_ID}.skerry.test`), 400, { reason: "target invalid" }],
  ["a port in another base", at("any.test", "/", named(SANDBOX_ID, "0x50")), 400, { reason: "target invalid" }],
  ["two routing headers", at("any.test", "/", named(SANDBOX_ID, "80") + named(SANDBOX_ID, "81")), 400, { reason: "target invalid" }],
  ["an id that leads out", at("any.test", "/", named("../x", "80")), 400, { reason: "target invalid" }],
  [
    "routing headers for the path form",
    at(PATH_HOST, `/s/${SANDBOX_ID}/3000/`, named(SANDBOX_ID, "80")),
    400,
    { reason: "target invalid" },
  ],
  ["another host in the request line", at(hostOf(3000), `http://${hostOf(3001)}/`), 400, { reason: "target invalid" }],
  ["a path of the platform", at(hostOf(AGENT), "/%69nit?private-path"), 404, { reason: "path reserved", ...sandbox }],
  ["the agent by path", at(PATH_HOST, `/s/${SANDBOX_ID}/${AGENT}/private-path`), 400, { reason: "agent by path", ...sandbox }],
  [
    "a foreign signature",
    at("any.test", `/files?path=private-path&signature=${encodeURIComponent(SIGNATURE)}`),
    401,
    { reason: "signature invalid" },
  ],
  ["no signature at all", at("any.test", "/files?path=private-path&signature=v1_x"), 401, { reason: "signature invalid" }],
  ["a link that is not valid", at(hostOf(3000), "/", `Skerry-Link-Token: ${LINK}\r\n`), 403, { reason: "link invalid", port: 3000 }],
];

test.each(TRICKS)("a trace is left by %s", async (_name, request, status, line) => {
  using log = logToFile();
  await using world = await createWorld("direct", { logger: log.logger, pathHost: PATH_HOST, now: () => 0 });
  await world.serve(3000, (_req, res) => res.end("reached"));
  await world.serve(AGENT, (_req, res) => res.end("reached"));
  for (let n = 0; n < 3; n++) {
    const answer = await new RawClient(world.port).send(request).untilClosed();
    expect([answer.slice(9, 12), answer.includes("reached")]).toEqual([String(status), false]);
  }
  // The second and third are part of the next line, in ten seconds.
  const [trace, ...more] = log.read().trim().split("\n");
  expect(more).toEqual([]);
  const common = { msg: "traffic to a sandbox was refused", client_address: expect.stringContaining("127.0.0.1"), requests: 1 };
  expect(JSON.parse(trace ?? "")).toMatchObject({ ...common, ...line });
  for (const secret of SECRETS) expect(trace).not.toContain(secret);
});

test("a request that names no sandbox, such as a health check of a load balancer, leaves none", async () => {
  using log = logToFile();
  await using world = await createWorld("direct", { logger: log.logger });
  expect(await new RawClient(world.port).send(at("192.0.2.1", "/")).untilClosed()).toMatch(/^HTTP\/1\.1 400 /);
  expect(log.read()).toBe("");
});
