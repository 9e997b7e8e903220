import { connect } from "node:net";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("the HTTP surface", { inSample: "sqlite" }, (api) => {
  const create = (options: object) => api().call("POST", "/v2/sandboxes", options);

  it("refuses every kind of bad body with 400", async () => {
    const base = { templateID: "base" };
    const bodies: Record<string, unknown>[] = [
      { body: {} },
      { body: [] },
      { body: "text" },
      { body: null },
      { body: { templateID: 1 } },
      { body: { templateID: null } },
      { body: { ...base, timeout: "5" } },
      { body: { ...base, timeout: 1.5 } },
      { body: { ...base, timeout: -1 } },
      { body: { ...base, timeout: 2 ** 31 } },
      { raw: '{"templateID":"base","timeout":1e999}' },
      { raw: `{"templateID":"base","timeout":${"9".repeat(400)}}` },
      { body: { ...base, metadata: { a: 1 } } },
      { body: { ...base, metadata: { "a\nb": 1 } } },
      { body: { ...base, metadata: ["a"] } },
      { body: { ...base, metadata: { a: "x\0y" } } },
      { body: { ...base, metadata: { "\0": "x" } } },
      { raw: '{"templateID":"base","metadata":{"a":"\\ud800"}}' },
      { body: { ...base, metadata: { a: "x".repeat(64 * 1024) } } },
      { body: { ...base, metadata: { a: "\u0001".repeat(11 * 1024) } } },
      { body: { ...base, metadata: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${i}`, ""])) } },
      { body: { ...base, envVars: { A: "x".repeat(1024 * 1024) } } },
      { body: { ...base, envVars: { A: "x".repeat(600_000), B: "x".repeat(600_000) } } },
      { body: { ...base, envVars: { "": "x" } } },
      { body: { ...base, envVars: { "A=B": "x" } } },
      { body: { ...base, envVars: { A: "\0" } } },
      { body: { ...base, allow_internet_access: "no" } },
      { body: { ...base, autoResume: {} } },
      { body: { ...base, network: { allowOut: "x" } } },
      { body: { ...base, volumeMounts: [{}] } },
      { raw: "{" },
      { raw: "" },
      { raw: "nonsense" },
      { raw: Buffer.from([0x7b, 0xff, 0x7d]) },
      { raw: '{"__proto__":{"templateID":"base"}}' },
      { raw: JSON.stringify(base), headers: { "Content-Type": "text/plain" } },
      { raw: `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}` },
    ];
    for (const options of bodies) {
      const answer = await create(options);
      const shown = JSON.stringify(options).slice(0, 80);
      expect({ shown, ...answer.body }).toEqual({ shown, code: 400, message: expect.stringMatching(/^validation error/) });
    }
    expect((await create({ body: { ...base, timeout: 0 } })).body).toEqual({ code: 400, message: "Timeout must be greater than 0" });
    expect((await create({ body: { ...base, timeout: 86_401 } })).body.message).toBe("Timeout cannot be greater than 24 hours");
    expect(api().node.calls.filter(({ method }) => method === "create")).toEqual([]);
  });

  it("refuses a body over 16 MiB with 413", async () => {
    const answer = await create({ body: { templateID: "base", metadata: { a: "x".repeat(16 * 1024 * 1024) } } });
    expect(answer).toMatchObject({ status: 413, body: { code: 413 } });
  });

  it("accepts 1 MiB of environment in chunks", async () => {
    const envVars = { BIG: "x".repeat(1024 * 1024 - '{"BIG":""}'.length) };
    const body = JSON.stringify({ templateID: "base", envVars });
    const response = await fetch(`${api().url}/v2/sandboxes`, {
      method: "POST",
      headers: { "X-API-Key": api().apiKey, "Content-Type": "application/json; charset=utf-8" },
      body: new Blob([body]).stream(),
      duplex: "half",
    });
    expect(response.status).toBe(201);
  });

  it("accepts options that change nothing, and refuses contradictions", async () => {
    const harmless = {
      autoPause: false,
      autoResume: { enabled: false },
      mcp: { x: 1 },
      iam: null,
      volumeMounts: [],
      network: { allowPublicTraffic: true, egressProxy: null, allowOut: [], rules: {} },
    };
    expect((await create({ body: { templateID: "base", ...harmless } })).status).toBe(201);
    const iam = await create({ body: { templateID: "base", iam: { tokens: { aws: { audience: "a", tokenType: "JWT-SVID" } } } } });
    expect(iam.body).toEqual({ code: 400, message: "Sandbox IAM workload tokens are not available for your team." });
    const contradiction = await create({ body: { templateID: "base", autoPauseMemory: false } });
    expect(contradiction.body).toEqual({ code: 400, message: "autoPauseMemory=false only applies when autoPause is true." });
  });

  it("asks for credentials before anything else", async () => {
    const attempts: [Record<string, string>, RegExp][] = [
      [{}, /^authorization header is missing$/],
      [{ "X-API-Key": "nope" }, /^authorization header is malformed$/],
      [{ "X-API-Key": "" }, /^authorization header is (missing|malformed)$/],
      [{ "X-API-Key": "e2b_zz" }, /^Invalid API key.*\nInvalid API key format$/],
      [{ "X-API-Key": "e2b_00ff" }, /^Invalid API key.*\nCannot get the team for the given API key$/],
      [{ Authorization: `Bearer ${api().accessToken}` }, /^authorization header is missing$/],
      [{ "X-Admin-Token": "wrong" }, /^Invalid Access token/],
    ];
    for (const [headers, message] of attempts) {
      for (const [method, path] of [
        ["GET", "/sandboxes/BAD ID"],
        ["POST", "/v2/sandboxes"],
        ["GET", "/v2/sandboxes?limit=abc"],
      ] as const) {
        const answer = await api().call(method, path.replace(" ", "%20"), {
          key: null,
          headers,
          ...(method === "POST" ? { raw: "{" } : {}),
        });
        expect(answer.body).toEqual({ code: 401, message: expect.stringMatching(message) });
      }
    }
    expect((await api().call("GET", "/v2/sandboxes", { key: api().apiKey.toUpperCase().replace("E2B", "e2b") })).status).toBe(200);
  });

  it("lets the admin act as a team", async () => {
    const admin = (team?: string) => ({
      key: null,
      headers: { "X-Admin-Token": api().adminToken, ...(team ? { "X-Team-ID": team } : {}) },
    });
    const id = await api().create();
    expect((await api().call("GET", `/sandboxes/${id}`, admin(api().teamId))).status).toBe(200);
    expect((await api().call("GET", `/sandboxes/${id}`, admin())).body).toEqual({ code: 400, message: "Invalid team ID" });
    expect((await api().call("GET", `/sandboxes/${id}`, admin(crypto.randomUUID()))).body).toEqual({
      code: 404,
      message: "Team not found",
    });
    expect((await api().call("GET", "/nodes", admin())).status).toBe(200);
    expect((await api().call("GET", "/nodes")).status).toBe(401);
  });

  it("lists a user's teams, with a key that works", async () => {
    const answer = await api().call("GET", "/teams", { key: null, headers: { Authorization: `Bearer ${api().accessToken}` } });
    expect(answer.body).toEqual([
      { teamID: api().teamId, name: "Default", apiKey: expect.stringMatching(/^e2b_[0-9a-f]{40}$/), isDefault: true },
    ]);
    expect((await api().call("GET", "/v2/sandboxes", { key: answer.body[0].apiKey })).status).toBe(200);
    for (const [token, message] of [
      ["Bearer sk_e2b_00", /^Invalid Access token/],
      ["Bearer sk_e2b_x", /^Invalid Access token/],
      ["Bearer x", /malformed/],
    ] as const) {
      const refused = await api().call("GET", "/teams", { key: null, headers: { Authorization: token } });
      expect(refused.body).toEqual({ code: 401, message: expect.stringMatching(message) });
    }
  });

  it("refuses to delete a tag through the path of a template", async () => {
    expect((await api().call("DELETE", "/templates/team%2Falias%3Atag")).body).toEqual({
      code: 404,
      message: "template 'team/alias' not found",
    });
  });

  it("refuses odd paths and ids", async () => {
    const statuses: [string, string, number][] = [
      ["GET", "/nothing", 404],
      ["PUT", "/sandboxes", 404],
      ["GET", "/sandboxes/", 400],
      ["GET", "/sandboxes/not-found", 404],
      ["GET", "/sandboxes/UPPER", 400],
      ["GET", "/sandboxes/a-b-c", 400],
      ["GET", "/sandboxes/a%2Fb", 400],
      ["GET", "/sandboxes/a%00b", 400],
      ["GET", "/sandboxes/%zz", 400],
      ["GET", `/sandboxes/${"a".repeat(65)}`, 400],
      ["GET", `/sandboxes/${"a".repeat(900)}`, 400],
      ["GET", "/sandboxes/..%2f..%2fetc", 400],
      ["GET", `/v2/sandboxes?metadata=${"a".repeat(100_000)}`, 431],
    ];
    for (const [method, path, status] of statuses) {
      const answer = await api().call(method, path);
      expect({ path: path.slice(0, 60), code: answer.body?.code, status: answer.status }).toEqual({
        path: path.slice(0, 60),
        code: status,
        status,
      });
      if (status === 400) expect(answer.body.message).toMatch(/^validation error/);
    }
  });

  it("answers what is not HTTP in the shape of every error", async () => {
    const { hostname, port } = new URL(api().url);
    const socket = connect(Number(port), hostname);
    socket.end("NONSENSE\r\n\r\n");
    const text = (await socket.toArray()).join("");
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(text.split("\r\n\r\n")[1] ?? "")).toEqual({ code: 400, message: expect.any(String) });
  });

  it("answers browsers on any page", async () => {
    const preflight = await api().call("OPTIONS", "/v2/sandboxes", {
      key: null,
      headers: { Origin: "https://x.test", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers["access-control-allow-origin"]).toBe("*");
    expect(preflight.headers["access-control-allow-headers"]).toMatch(/X-API-Key.*Idempotency-Key/);
    expect(preflight.headers["access-control-allow-methods"]).toMatch(/DELETE/);
    const refused = await api().call("GET", "/v2/sandboxes", { key: null, headers: { Origin: "https://x.test" } });
    expect(refused.headers["access-control-allow-origin"]).toBe("*");
    expect(refused.headers["access-control-expose-headers"]).toMatch(/X-Next-Token.*Should-Retry/);
  });

  it("tells that it is well, and what it can do", async () => {
    expect(await api().call("GET", "/health", { key: null })).toMatchObject({ status: 200, text: "Health check successful" });
    const document = await api().call("GET", "/openapi.json", { key: null });
    expect(document.body.openapi).toBe("3.1.0");
    expect(document.body.paths["/v2/sandboxes"].post.operationId).toBe("createSandbox");
  });
});
