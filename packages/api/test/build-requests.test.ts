import { randomUUID } from "node:crypto";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { begun, ended, requestBuild, startBuild, statusOf, trigger } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("a request about builds", { inSample: "sqlite", limits: { builds: 3 } }, (api) => {
  const ask = (body: unknown, options: object = {}) => api().call("POST", "/v3/templates", { body, ...options });
  const bearer = () => ({ key: null, headers: { Authorization: `Bearer ${api().accessToken}` } });

  it("is refused with 400 for every kind of bad body", async () => {
    const bodies: [unknown, RegExp][] = [
      [{}, /^Name is required$/],
      [{ name: "" }, /^Invalid name/],
      [{ name: "a b" }, /^Invalid name/],
      [{ name: "x".repeat(129) }, /^Invalid name/],
      [{ name: "other/web" }, /^namespace 'other' must match your team/],
      [{ name: "web", tags: ["ok", ":x"] }, /^Invalid tag/],
      [{ name: "web", tags: [randomUUID()] }, /^Invalid tag/],
      [{ name: "web", tags: "v1" }, /^validation error/],
      [{ name: 7 }, /^validation error/],
      [{ name: "web", cpuCount: 0 }, /^validation error.*CPU count must be at least 1$/],
      [{ name: "web", cpuCount: 3 }, /^CPU count must be 1 or an even number$/],
      [{ name: "web", cpuCount: 34 }, /^CPU count must be at most 32$/],
      [{ name: "web", cpuCount: 1.5 }, /^validation error/],
      [{ name: "web", cpuCount: "2" }, /^validation error/],
      [{ name: "web", memoryMB: 126 }, /^validation error.*Memory must be at least 128 MiB$/],
      [{ name: "web", memoryMB: 129 }, /^Memory must be divisible by 2$/],
      [{ name: "web", memoryMB: 100_000 }, /^Memory can't be higher than 65536 MiB$/],
      [{ name: "web", minFreeDiskMb: -1 }, /^validation error/],
      [{ name: "web", teamID: "prj_x" }, /^Team ID param mismatch with the API key$/],
      [[], /^validation error/],
      [null, /^validation error/],
    ];
    for (const [body, message] of bodies) {
      expect({ body, answer: (await ask(body)).body }).toEqual({ body, answer: { code: 400, message: expect.stringMatching(message) } });
    }
  });

  it("gets defaults, and more disk space on request", async () => {
    const { node } = api();
    const ids = await startBuild(api(), "web");
    await ended(api(), ids);
    expect(node.builds.started[0]).toMatchObject({ cpuCount: 2, memoryMb: 1024, diskSizeMb: 10_240 });
    const large = await requestBuild(api(), "web", { alias: "ignored", minFreeDiskMb: 20_000, teamID: api().teamId });
    await trigger(api(), large);
    await ended(api(), large);
    expect(large.templateID).toBe(ids.templateID);
    expect(node.builds.started[1]).toMatchObject({ diskSizeMb: 20_000 });
  });

  it("is refused when the name is the id of a template", async () => {
    const { templateID } = await requestBuild(api(), "web");
    expect((await ask({ name: templateID })).body).toEqual({ code: 409, message: `Alias '${templateID}' is already used` });
  });

  it("finds only builds of its own team", async () => {
    const ids = await requestBuild(api(), "web");
    const start = (path: string, options: object = {}) =>
      api().call("POST", `/v2/templates/${path}`, { body: { fromImage: "x" }, ...options });
    const other = { key: api().otherKey };
    expect((await start(`${ids.templateID}/builds/x`)).body).toEqual({ code: 400, message: "Invalid build ID: x" });
    expect((await start(`${ids.templateID}/builds/${randomUUID()}`)).body.message).toMatch(/^Error when getting template: /);
    expect((await start(`unknown/builds/${ids.buildID}`)).status).toBe(404);
    expect((await start(`${ids.templateID}/builds/${ids.buildID}`, other)).body).toEqual({
      code: 403,
      message: "User does not have access to the template",
    });
    for (const what of ["status", "logs"]) {
      const read = (id: string, options: object = {}) => api().call("GET", `/templates/${ids.templateID}/builds/${id}/${what}`, options);
      expect((await read("x")).body).toEqual({ code: 400, message: "Invalid build id" });
      const unknown = randomUUID();
      expect((await read(unknown)).body).toEqual({ code: 400, message: `Build '${unknown}' not found` });
      const message = `You don't have access to this sandbox template (${ids.templateID})`;
      expect((await read(ids.buildID, other)).body).toEqual({ code: 403, message });
      expect((await read(ids.buildID, bearer())).status).toBe(200);
      expect((await read(`${ids.buildID}`, { key: null })).status).toBe(401);
    }
    for (const query of ["?logsOffset=-1", "?logsOffset=x", "?limit=101", "?limit=-1", "?level=trace"]) {
      expect((await statusOf(api(), ids, query)).code).toBe(400);
    }
  });

  it("to start with bad fields is refused, and the build waits on", async () => {
    const ids = await requestBuild(api(), "web");
    const bodies: [object, RegExp][] = [
      [{ steps: "x" }, /^validation error/],
      [{ steps: [{}] }, /^validation error/],
      [{ steps: [{ type: "RUN", args: [1] }] }, /^validation error/],
      [{ steps: [{ type: "RUN", args: ["a\0b"] }] }, /^validation error.*NUL/],
      [{ steps: [{ type: "COPY", args: ["a", "b"], filesHash: "../x" }] }, /^Invalid files hash$/],
      [{ steps: Array.from({ length: 1001 }, () => ({ type: "RUN" })) }, /^validation error/],
      [{ startCmd: 7 }, /^validation error/],
      [{ force: "yes" }, /^validation error/],
      [{ fromImageRegistry: { type: "registry", username: "u" } }, /^validation error/],
      [{ fromImageRegistry: { type: "other" } }, /^validation error/],
    ];
    for (const [body, message] of bodies) {
      const answer = await trigger(api(), ids, { fromImage: "x", ...body });
      expect({ body, answer: answer.body }).toEqual({ body, answer: { code: 400, message: expect.stringMatching(message) } });
    }
    expect((await statusOf(api(), ids)).status).toBe("waiting");
    expect((await trigger(api(), ids)).status).toBe(202);
  });

  it.each([[{}], [{ fromImage: "" }], [{ fromImage: "a", fromTemplate: "b" }]])(
    "to start with the sources %j fails the build",
    async (sources) => {
      const ids = await requestBuild(api(), "web");
      const answer = await trigger(api(), ids, sources);
      expect(answer).toMatchObject({ status: 400, body: { message: expect.stringMatching(/fromImage and fromTemplate/) } });
      expect(await statusOf(api(), ids)).toMatchObject({ status: "error", reason: { message: answer.body.message } });
      expect((await trigger(api(), ids)).body.message).toBe("build is not in waiting state");
    },
  );

  it("to start the same build twice starts it once", async () => {
    const ids = await requestBuild(api(), "web");
    const answers = await Promise.all(Array.from({ length: 5 }, () => trigger(api(), ids)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 400, 400, 400, 400]);
    expect(answers.find(({ status }) => status === 400)?.body.message).toBe("build is not in waiting state");
    await ended(api(), ids);
    expect(api().node.builds.started).toHaveLength(1);
  });

  it("by clients before 2.3.0 leaves out the default user", async () => {
    const { node } = api();
    for (const [agent, isOld] of [
      ["e2b-python-sdk/2.2.9", true],
      ["e2b-js-sdk/2.3.0 source/x", false],
      ["e2b-js-sdk/2.51.0 e2b-cli/2.19.0", false],
      ["curl/1.0", false],
    ] as const) {
      const ids = await requestBuild(api(), "web");
      await trigger(api(), ids, undefined, { headers: { "User-Agent": agent } });
      await ended(api(), ids);
      expect({ agent, isOld: node.builds.started.at(-1)?.withoutDefaultUser }).toEqual({ agent, isOld });
    }
  });

  it("over the limit of the team gets 429, until a build has ended", async () => {
    api().node.builds.holds = true;
    const all = [];
    const waiting = await requestBuild(api(), "waiting");
    for (const name of ["a", "b", "c"]) all.push(await startBuild(api(), name));
    const message = expect.stringMatching(/^you have reached the maximum number of concurrent template builds \(3\)\./);
    expect(await ask({ name: "d" })).toMatchObject({ status: 429, body: { message }, headers: { "should-retry": "false" } });
    expect(await trigger(api(), waiting)).toMatchObject({ status: 429, body: { message } });
    expect((await ask({ name: "d" }, { key: api().otherKey })).status).toBe(202);
    const [first = waiting] = all;
    await begun(api(), first);
    api().node.builds.fail(first.buildID, "x");
    await ended(api(), first);
    expect((await trigger(api(), waiting)).status).toBe(202);
  });

  it("of a Dockerfile registers and starts a build at once", async () => {
    const dockerfile = "FROM debian:12\nENV A=1\nRUN make \\\n  all\nCMD serve";
    const answer = await api().call("POST", "/templates", {
      ...bearer(),
      body: { dockerfile, alias: "web", readyCmd: "true", cpuCount: 1 },
    });
    expect(answer).toMatchObject({
      status: 202,
      body: { aliases: ["web"], cpuCount: 1, memoryMB: 1024, buildCount: 1, envdVersion: "", createdBy: null },
    });
    const status = await ended(api(), answer.body);
    expect(status).toMatchObject({ status: "ready", logEntries: [{}] });
    expect(status.logs[0]).toMatch(/^\[\d{4}-.*Z\] Building template .*\n$/);
    expect(api().node.builds.started[0]).toMatchObject({
      startCommand: "serve",
      readyCommand: "true",
      source: { value: { reference: "debian:12" } },
    });
    const path = `/templates/${answer.body.templateID}/builds/${answer.body.buildID}`;
    expect((await api().call("POST", path, bearer())).status).toBe(202);
    const again = await api().call("POST", `/templates/${answer.body.templateID}`, {
      ...bearer(),
      body: { dockerfile, startCmd: "other" },
    });
    expect(again).toMatchObject({ status: 202, body: { templateID: answer.body.templateID, buildCount: 2 } });
    await ended(api(), again.body);
    expect(api().node.builds.started[1]).toMatchObject({ startCommand: "other" });
    expect((await api().call("POST", "/templates/unknown", { ...bearer(), body: { dockerfile } })).status).toBe(404);
    expect((await api().call("POST", "/templates", { body: { dockerfile } })).status).toBe(401);
    const unnamed = await api().call("POST", "/templates", { ...bearer(), body: { dockerfile } });
    expect(unnamed).toMatchObject({ status: 202, body: { aliases: [], names: [] } });
  });

  it("of a Dockerfile that cannot be built is refused with its line", async () => {
    const files: [string, RegExp][] = [
      ["FROM a\nRUN x\nCOPY . /app", /^line 3: COPY needs files/],
      ["FROM a\nADD x /", /^line 2: ADD needs files/],
      ["FROM a\nRUN x\nNONSENSE", /line 3/],
      ["", /^The Dockerfile cannot be built/],
      ["FROM a\0", /^The Dockerfile cannot be built/],
    ];
    for (const [dockerfile, message] of files) {
      const answer = await api().call("POST", "/templates", { ...bearer(), body: { dockerfile, alias: "web" } });
      expect(answer.body).toEqual({ code: 400, message: expect.stringMatching(message) });
    }
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "web" } })).body.message).toBe("template 'web' not found");
  });

  it("of an older client registers a build", async () => {
    const answer = await api().call("POST", "/v2/templates", { body: { alias: "web" } });
    expect(answer).toMatchObject({ status: 202, body: { aliases: ["web"], names: [expect.stringMatching(/\/web$/)], cpuCount: 2 } });
    const path = `/templates/${answer.body.templateID}/builds/${answer.body.buildID}`;
    expect((await api().call("POST", path, bearer())).body.message).toMatch(/^images cannot be pushed/);
    expect((await trigger(api(), answer.body)).status).toBe(202);
    expect((await api().call("POST", "/v2/templates", { body: {} })).body.message).toMatch(/^validation error/);
  });

  it("by the operator ends all builds of a team", async () => {
    const { node } = api();
    node.builds.holds = true;
    const waiting = await requestBuild(api(), "a");
    const running = await startBuild(api(), "b");
    const others = await startBuild(api(), "c", undefined, { key: api().otherKey });
    await begun(api(), running);
    const cancel = (teamId: string) =>
      api().call("POST", `/admin/teams/${teamId}/builds/cancel`, { key: null, headers: { "X-Admin-Token": api().adminToken } });
    expect((await cancel(api().teamId)).body).toEqual({ cancelledCount: 2, failedCount: 0 });
    for (const ids of [waiting, running]) {
      expect(await statusOf(api(), ids)).toMatchObject({ status: "error", reason: { message: "build was cancelled" } });
    }
    await waitUntil("the node has forgotten it", () => node.builds.forgotten.includes(running.buildID));
    expect(node.builds.cancelled).toContain(running.buildID);
    expect((await statusOf(api(), others, "", { key: api().otherKey })).status).toBe("building");
    expect((await cancel("x")).status).toBe(400);
    expect((await api().call("POST", `/admin/teams/${api().teamId}/builds/cancel`)).status).toBe(401);
  });

  it("pages through the log from a time on, in both directions", async () => {
    const { node } = api();
    node.builds.holds = true;
    const ids = await startBuild(api(), "web");
    await begun(api(), ids);
    for (let each = 1; each <= 150; each += 1) {
      node.builds.say(ids.buildID, `line ${each}`, { atMs: each * 1000, level: each % 50 === 0 ? "warn" : "info" });
    }
    node.builds.succeed(ids.buildID);
    await ended(api(), ids);
    const logs = async (query: string) => {
      const { body } = await api().call("GET", `/templates/${ids.templateID}/builds/${ids.buildID}/logs${query}`);
      return (body.logs as { message: string }[]).map(({ message }) => Number(message.slice("line ".length)));
    };
    const range = (from: number, to: number) =>
      Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => from + (from < to ? index : -index));
    expect(await logs("")).toEqual(range(1, 100));
    expect(await logs("?cursor=100000")).toEqual(range(100, 150));
    expect(await logs("?direction=backward&limit=3")).toEqual([150, 149, 148]);
    expect(await logs("?direction=backward&cursor=5000&source=persistent")).toEqual(range(5, 1));
    expect(await logs("?level=warn")).toEqual([50, 100, 150]);
    expect(await logs("?limit=0")).toEqual([]);
    expect(await logs("?cursor=9999999999999")).toEqual([]);
    const page = await statusOf(api(), ids, "?logsOffset=1&level=warn");
    expect(page.logEntries).toMatchObject([{ message: "line 100" }, { message: "line 150" }]);
    expect((await statusOf(api(), ids, "?logsOffset=150")).logEntries).toEqual([]);
    expect((await statusOf(api(), ids, "?logsOffset=100")).logEntries).toHaveLength(50);
  });
});
