import { createHash } from "node:crypto";
import { Code, createClient } from "@connectrpc/connect";
import { AGENT_VERSION } from "@skerry/wire";
import { Process } from "@skerry/wire/process";
import { beforeEach, describe, expect, it } from "vitest";
import { type AgentUnderTest, failure, run, startAgentUnderTest } from "./agent-under-test.ts";

const TOKEN = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
let agent: AgentUnderTest;

beforeEach(async () => {
  agent = await startAgentUnderTest();
  return () => agent[Symbol.asyncDispose]();
});

async function answer(response: Response): Promise<{ status: number; body: unknown }> {
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
}

describe("routes", () => {
  it("responds to /health with an empty 204", async () => {
    const response = await agent.fetch("/health");
    expect(response.status).toBe(204);
    expect(Object.fromEntries(response.headers)).toMatchObject({ "cache-control": "no-store", "content-type": "", vary: "Origin" });
  });

  it.each([
    ["GET", "/nope", 404, "404 page not found\n", null],
    ["GET", "/health/", 404, "404 page not found\n", null],
    ["GET", "//health", 404, "404 page not found\n", null],
    ["POST", "/process.Process/Nope", 404, "404 page not found\n", null],
    ["POST", "/health", 405, "", "GET"],
    ["PUT", "/files", 405, "", "GET, POST"],
    ["GET", "/process.Process/List", 405, "", "POST"],
    ["OPTIONS", "/health", 405, "", "GET"],
    ["HEAD", "/health", 405, "", "GET"],
    ["HEAD", "/files", 405, "", "GET, POST"],
  ])("answers %s %s with %i", async (method, path, status, body, allow) => {
    const response = await agent.fetch(path, { method });
    expect({ status: response.status, body: await response.text(), allow: response.headers.get("allow") }).toEqual({ status, body, allow });
  });

  it("refuses the control routes of agents in virtual machines with 501", async () => {
    for (const path of ["/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"]) {
      expect(await answer(await agent.fetch(path, { method: "POST" }))).toEqual({
        status: 501,
        body: { code: 501, message: `POST ${path} is not implemented by this agent` },
      });
    }
  });

  it("refuses RPC content types that do not fit the method", async () => {
    const post = (path: string, type: string) => agent.fetch(path, { method: "POST", headers: { "Content-Type": type }, body: "{}" });
    expect((await post("/process.Process/List", "application/json")).status).toBe(200);
    expect((await post("/process.Process/List", "application/json; charset=utf-8")).status).toBe(200);
    const refused = await post("/process.Process/List", "application/connect+json");
    expect({ status: refused.status, accept: refused.headers.get("accept-post"), body: await refused.text() }).toEqual({
      status: 415,
      accept: expect.stringContaining("application/json"),
      body: "",
    });
    expect((await post("/process.Process/Start", "application/json")).status).toBe(415);
  });

  it("supports the binary codec, and never compresses responses", async () => {
    const client = createClient(Process, agent.transport({ binary: true, headers: { "Accept-Encoding": "gzip" } }));
    let stdout = "";
    let exitCode: number | undefined;
    for await (const { event } of client.start({ process: { cmd: "/bin/sh", args: ["-c", "echo hi; kill -9 $$"] }, stdin: false })) {
      if (event?.event.case === "data") stdout += Buffer.from(event.event.value.output.value ?? []).toString();
      if (event?.event.case === "end") exitCode = event.event.value.exitCode;
    }
    expect({ stdout, exitCode }).toEqual({ stdout: "hi\n", exitCode: -1 });
    const response = await agent.fetch("/process.Process/List", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Accept-Encoding": "gzip" },
      body: "{}",
    });
    expect(response.headers.get("content-encoding")).toBeNull();
  });

  it("reports CPU, memory and disk usage", async () => {
    const usage = (await (await agent.fetch("/metrics")).json()) as Record<string, number>;
    expect(Object.keys(usage).sort()).toEqual(
      [
        "ts",
        "cpu_count",
        "cpu_used_pct",
        "mem_total",
        "mem_used",
        "mem_cache",
        "mem_total_mib",
        "mem_used_mib",
        "disk_total",
        "disk_used",
      ].sort(),
    );
    expect(usage.mem_total).toBeGreaterThan(usage.mem_used ?? Number.POSITIVE_INFINITY);
    expect(usage.cpu_used_pct).toBeGreaterThanOrEqual(0);
    expect(usage.cpu_used_pct).toBeLessThanOrEqual(100);
  });
});

describe("CORS", () => {
  const corsOf = (headers: Headers) => Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-")));

  it("answers preflights without a token, and allows only the methods that clients need", async () => {
    await agent.init({ accessToken: TOKEN });
    const preflight = async (wanted: string) => {
      const asked = { "Access-Control-Request-Method": wanted, "Access-Control-Request-Headers": "x-access-token" };
      const { status, headers } = await agent.fetch("/envs", { method: "OPTIONS", headers: { Origin: "https://example.org", ...asked } });
      return { status, vary: headers.get("vary"), cors: corsOf(headers) };
    };
    const vary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
    expect(await preflight("GET")).toEqual({
      status: 204,
      vary,
      cors: {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET",
        "access-control-allow-headers": "x-access-token",
        "access-control-max-age": "7200",
      },
    });
    expect(await preflight("TRACE")).toEqual({ status: 204, vary, cors: {} });
    expect((await agent.fetch("/envs", { method: "OPTIONS" })).status).toBe(401);
  });

  it.each([
    ["GET", "/health", 204],
    ["POST", "/process.Process/List", 200],
    ["GET", "/nope", 404],
    ["GET", "/files?path=/nope", 404],
    ["GET", "/envs", 401],
  ])("lets any origin read the answer to %s %s, which is %i", async (method, path, status) => {
    if (status === 401) await agent.init({ accessToken: TOKEN });
    const body = method === "POST" ? "{}" : null;
    const headers = { Origin: "https://example.org", "Content-Type": "application/json" };
    const response = await agent.fetch(path, { method, body, headers });
    expect({ status: response.status, vary: response.headers.get("vary"), cors: corsOf(response.headers) }).toEqual({
      status,
      vary: "Origin",
      cors: {
        "access-control-allow-origin": "*",
        "access-control-expose-headers":
          "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, X-Content-Type-Options",
      },
    });
  });
});

describe("POST /init", () => {
  it("reports the version on every outcome", async () => {
    await agent.init({ accessToken: TOKEN });
    const outcomes: [body: string, headers: Record<string, string>, status: number, text: string][] = [
      ["{", {}, 400, ""],
      ['{"defaultUser":1}', {}, 400, ""],
      ['{"accessToken":""}', {}, 400, ""],
      ['{"accessToken":"back\\\\slash"}', {}, 400, ""],
      ["", {}, 401, "access token reset not authorized\n"],
      [`{"accessToken":"${TOKEN}"}`, {}, 204, ""],
      [`{"accessToken":"${TOKEN}","hyperloopIP":"192.0.2.1"}`, {}, 501, "not implemented by this agent yet: hyperloopIP\n"],
      ["", { "X-Access-Token": TOKEN }, 204, ""],
    ];
    for (const [body, headers, status, text] of outcomes) {
      const response = await agent.fetch("/init", { method: "POST", body, headers });
      expect([body, response.status, await response.text()]).toEqual([body, status, text]);
      expect(response.headers.get("x-envd-version")).toBe(AGENT_VERSION);
      expect(response.headers.get("cache-control")).toBe(status === 204 ? "no-store" : null);
    }
  });

  it("replaces the variables of later processes, but never those of the platform", async () => {
    const envs = async () => (await agent.fetch("/envs")).json();
    await agent.init({ envVars: { A: "1", B: "2", E2B_SANDBOX: "no" }, sandboxId: "isbx", templateId: "tpl" });
    expect(await envs()).toEqual({ A: "1", B: "2", E2B_SANDBOX: "true", E2B_SANDBOX_ID: "isbx", E2B_TEMPLATE_ID: "tpl" });
    await agent.init({});
    expect(await envs()).toMatchObject({ A: "1" });
    await agent.init({ envVars: { C: "3" } });
    expect(await envs()).not.toHaveProperty("A");
    expect((await run(agent, "/bin/sh", ["-c", "echo $A$C$D"], { envs: { D: "4" } })).stdout).toBe("34\n");
    expect((await run(agent, "/bin/sh", ["-c", "echo $D"])).stdout).toBe("\n");
    const running = run(agent, "/bin/sh", ["-c", "read x; exec env"], { stdin: true });
    await expect.poll(async () => (await agent.process.list({})).processes).toHaveLength(1);
    await agent.init({ envVars: {} });
    expect(await envs()).toEqual({ E2B_SANDBOX: "true", E2B_SANDBOX_ID: "isbx", E2B_TEMPLATE_ID: "tpl" });
    const [{ pid = 0 } = {}] = (await agent.process.list({})).processes;
    await agent.process.closeStdin({ process: { selector: { case: "pid", value: pid } } });
    expect((await running).stdout).toMatch(/^C=3$/m);
  });

  it("sets the default user and directory", async () => {
    await agent.init({ defaultUser: "nobody", defaultWorkdir: "/usr" });
    expect((await run(agent, "/bin/sh", ["-c", "id -un; pwd"])).stdout).toBe("nobody\n/usr\n");
    const { entries } = await agent.filesystem.listDir({ path: "" });
    expect(entries.map(({ path }) => path)).toContain("/usr/bin");
    await agent.init({ defaultUser: "", defaultWorkdir: "" });
    expect((await run(agent, "id", ["-un"])).stdout).toBe("nobody\n");
    await agent.init({ defaultUser: "ghost" });
    await expect(run(agent, "id")).rejects.toThrow("invalid default user: 'ghost'");
    // Calls that act for no user still work.
    expect((await agent.process.list({})).processes).toEqual([]);
    const connect = agent.process.connect({ process: { selector: { case: "pid", value: 999_999 } } })[Symbol.asyncIterator]();
    expect(await failure(connect.next())).toEqual({ code: Code.NotFound, message: "process with pid 999999 not found" });
  });

  it("ignores requests that are older than the newest one", async () => {
    const at = (second: number, value: string) => agent.init({ timestamp: `2026-01-01T00:00:0${second}Z`, envVars: { V: value } });
    const value = async () => ((await (await agent.fetch("/envs")).json()) as { V: string }).V;
    await at(5, "new");
    expect((await at(4, "old")).status).toBe(204);
    expect(await value()).toBe("new");
    await at(5, "same");
    expect(await value()).toBe("same");
    await agent.init({ envVars: { V: "timeless" } });
    expect(await value()).toBe("timeless");
  });

  it("requires the token for older requests too, and does not change it then", async () => {
    const at = (second: number, accessToken: string, headers = {}) =>
      agent.init({ timestamp: `2026-01-01T00:00:0${second}Z`, accessToken }, headers);
    await at(5, TOKEN);
    expect(await answer(await at(4, "other"))).toEqual({ status: 401, body: "access token validation failed\n" });
    expect((await at(4, "other", { "X-Access-Token": TOKEN })).status).toBe(204);
    expect((await agent.fetch("/envs", { headers: { "X-Access-Token": "other" } })).status).toBe(401);
    expect((await agent.fetch("/envs", { headers: { "X-Access-Token": TOKEN } })).status).toBe(200);
  });

  it("accepts a request of another start or restore whatever its time, because the platform's clock may have been set back", async () => {
    const at = (second: number, lifecycleID: string) =>
      agent.init({ lifecycleID, timestamp: `2026-01-01T00:00:0${second}Z`, envVars: { V: `${lifecycleID} ${second}` } });
    const value = async () => ((await (await agent.fetch("/envs")).json()) as { V: string }).V;
    await at(5, "first");
    await at(3, "second");
    expect(await value()).toBe("second 3");
    await at(2, "second");
    expect(await value()).toBe("second 3");
  });

  it("changes the token only for a caller that knows it", async () => {
    expect((await agent.init({ accessToken: TOKEN })).status).toBe(204);
    expect((await agent.init({ accessToken: TOKEN })).status).toBe(204);
    expect(await answer(await agent.init({ accessToken: "other" }))).toEqual({ status: 401, body: "access token validation failed\n" });
    expect(await answer(await agent.init({}))).toEqual({ status: 401, body: "access token reset not authorized\n" });
    expect((await agent.init({ accessToken: "other" }, { "X-Access-Token": TOKEN })).status).toBe(204);
    expect((await agent.fetch("/envs", { headers: { "X-Access-Token": TOKEN } })).status).toBe(401);
    expect((await agent.fetch("/envs", { headers: { "X-Access-Token": "other" } })).status).toBe(200);
    expect((await agent.init({}, { "X-Access-Token": "other" })).status).toBe(204);
    expect((await agent.fetch("/envs")).status).toBe(200);
  });
});

describe("a secured agent", () => {
  const MESSAGE = "unauthorized access, please provide a valid access token or method signing if supported";

  beforeEach(async () => {
    await agent.init({ accessToken: TOKEN });
  });

  it("refuses every route without the token, in plain JSON also on RPC paths", async () => {
    for (const path of ["/envs", "/metrics", "/nope", "/process.Process/List"]) {
      expect(await answer(await agent.fetch(path, { method: path.includes("Process") ? "POST" : "GET" }))).toEqual({
        status: 401,
        body: { code: 401, message: MESSAGE },
      });
    }
    for (const [method, path] of [
      ["HEAD", "/files"],
      ["PUT", "/files"],
      ["POST", "/health"],
    ] as const) {
      expect((await agent.fetch(path, { method })).status).toBe(401);
    }
    expect((await agent.fetch("/health")).status).toBe(204);
    expect((await agent.fetch("/envs", { headers: { "X-Access-Token": TOKEN } })).status).toBe(200);
  });

  const sign = (path: string, operation: string, expiration?: number) => {
    const text = [path, operation, "root", TOKEN, ...(expiration === undefined ? [] : [expiration])].join(":");
    return `v1_${createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;
  };

  it("accepts signed file URLs", async () => {
    const url = (parameters: Record<string, string>) =>
      `/files?${new URLSearchParams({ path: "/etc/passwd", username: "root", ...parameters })}`;
    const now = Math.floor(Date.now() / 1000);
    const get = async (parameters: Record<string, string>, headers: Record<string, string> = {}) => {
      const response = await agent.fetch(url(parameters), { headers });
      return response.ok ? response.status : answer(response);
    };
    const refused = (message: string) => ({ status: 401, body: { code: 401, message } });
    expect(await get({ signature: sign("/etc/passwd", "read") })).toBe(200);
    expect(await get({ signature: sign("/etc/passwd", "read", now + 60), signature_expiration: String(now + 60) })).toBe(200);
    expect(await get({ signature: sign("/etc/passwd", "read", now - 60), signature_expiration: String(now - 60) })).toEqual(
      refused("signature is already expired"),
    );
    expect(await get({ signature: sign("/etc/passwd", "read"), signature_expiration: String(now - 60) })).toEqual(
      refused("invalid signature"),
    );
    expect(await get({ signature: sign("/etc/passwd", "write") })).toEqual(refused("invalid signature"));
    expect(await get({})).toEqual(refused("missing signature query parameter"));
    expect(await get({ path: "/nope", username: "ghost" })).toEqual(refused("missing signature query parameter"));
    expect(await get({ signature: sign("/etc/passwd", "read") }, { "X-Access-Token": "wrong" })).toEqual(
      refused("access token present in header but does not match"),
    );
    expect(await get({}, { "X-Access-Token": TOKEN })).toBe(200);
    const unreadable = await agent.fetch(url({ signature_expiration: "soon" }));
    expect({ status: unreadable.status, type: unreadable.headers.get("content-type"), text: await unreadable.text() }).toEqual({
      status: 400,
      type: "text/plain; charset=utf-8",
      text: expect.stringMatching(/^Invalid format for parameter signature_expiration: /),
    });
    const upload = await agent.fetch(url({ signature: sign("/etc/passwd", "write") }), {
      method: "POST",
      headers: { "X-Access-Token": "wrong" },
    });
    expect(await answer(upload)).toEqual(refused("access token present in header but does not match"));
    // A plus sign in a query is a space.
    const plus = Array.from({ length: 500 }, (_, n) => now + 60 + n).find((at) => sign("/etc/passwd", "read", at).includes("+")) ?? 0;
    const signature = sign("/etc/passwd", "read", plus);
    expect(await get({ signature, signature_expiration: String(plus) })).toBe(200);
    const raw = await agent.fetch(`${url({ signature_expiration: String(plus) })}&signature=${signature}`);
    expect(await answer(raw)).toEqual(refused("invalid signature"));
  });

  it("accepts signatures up to the end of their last second", async () => {
    const askedWithin = async (): Promise<{ second: number; status: number }> => {
      const second = Math.floor(Date.now() / 1000);
      const signature = sign("/etc/passwd", "read", second);
      const query = new URLSearchParams({ path: "/etc/passwd", username: "root", signature, signature_expiration: String(second) });
      const { status } = await agent.fetch(`/files?${query}`);
      // If the second ended before the response, the result proves nothing.
      return Math.floor(Date.now() / 1000) === second ? { second, status } : await askedWithin();
    };
    expect((await askedWithin()).status).toBe(200);
  });

  it("fails requests with the credentials of unknown users, each in its own form", async () => {
    const headers = { "X-Access-Token": TOKEN, Authorization: `Basic ${btoa("ghost:")}` };
    const envs = async (authorization: string) =>
      answer(await agent.fetch("/envs", { headers: { ...headers, Authorization: authorization } }));
    for (const name of ["ghost", ""]) {
      expect(await envs(`Basic ${btoa(`${name}:`)}`)).toEqual({
        status: 401,
        body: { code: "unauthenticated", message: `invalid username: '${name}'` },
      });
    }
    // Neither header names a user.
    for (const authorization of ["Bearer ghost", `Basic ${btoa("ghost")}`]) expect((await envs(authorization)).status).toBe(200);
    const home = agent.filesystem.stat({ path: "~" }, { headers: { ...headers, Authorization: "Bearer ghost" } });
    expect((await home).entry?.path).toBe("/root");
    const unary = await agent.fetch("/process.Process/List", {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: "{}",
    });
    const refused = { status: 401, body: { code: "unauthenticated", message: "invalid username: 'ghost'" } };
    expect(await answer(unary)).toEqual(refused);
    // This check comes before all other checks of the request.
    expect(await answer(await agent.fetch("/process.Process/Nope", { method: "POST", headers, body: "{}" }))).toEqual(refused);
    expect(await answer(await agent.fetch("/process.Process/List", { headers }))).toEqual(refused);
  });
});
