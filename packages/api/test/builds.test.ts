import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { begun, ended, type Ids, startBuild, statusOf, trigger } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("a build", { inSample: "both" }, (api) => {
  it("is requested, started, carried out, and a sandbox is created from it", async () => {
    const answer = await api().call("POST", "/v3/templates", { body: { name: "Web:v1", tags: ["v2"], cpuCount: 1, memoryMB: 256 } });
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      templateID: expect.stringMatching(/^[a-z0-9]{20}$/),
      buildID: expect.stringMatching(/^[0-9a-f-]{36}$/),
      public: false,
      names: [expect.stringMatching(/^[a-z0-9-]+\/web$/)],
      tags: ["v1", "v2"],
      aliases: ["web"],
    });
    const ids = answer.body as Ids;
    expect(await statusOf(api(), ids)).toEqual({
      ...ids,
      ...{ public: undefined, names: undefined, tags: undefined, aliases: undefined },
      status: "waiting",
      logs: [],
      logEntries: [],
    });
    const { node } = api();
    node.builds.holds = true;
    const steps = [
      { type: "run", args: ["echo hi"], forceUpload: true },
      { type: "COPY", args: ["a", "b", "", ""], filesHash: "a".repeat(64), force: true },
    ];
    const started = await trigger(api(), ids, { fromImage: "debian:12", steps, startCmd: "serve", force: false });
    expect(started).toMatchObject({ status: 202, text: "", headers: { "content-length": "0" } });
    expect((await statusOf(api(), ids)).status).toBe("building");
    await begun(api(), ids);
    expect(node.builds.started[0]).toMatchObject({
      buildId: ids.buildID,
      templateId: ids.templateID,
      cacheScope: api().teamId,
      source: { case: "image", value: { reference: "debian:12", credentials: { case: undefined } } },
      steps: [
        { type: "RUN", args: ["echo hi"], archive: "", filesHash: "", force: false },
        { type: "COPY", args: ["a", "b", "", ""], archive: "", filesHash: "a".repeat(64), force: true },
      ],
      startCommand: "serve",
      cpuCount: 1,
      memoryMb: 256,
      withoutDefaultUser: false,
    });
    expect(node.builds.started[0]?.readyCommand).toBeUndefined();
    node.builds.say(ids.buildID, "[builder 1/2] RUN echo hi", { step: "1" });
    node.builds.say(ids.buildID, "quiet", { step: "1", level: "debug" });
    await waitUntil("its lines are there", async () => (await statusOf(api(), ids)).logEntries.length === 2);
    expect((await statusOf(api(), ids, "?level=info")).logEntries).toEqual([
      { timestamp: expect.stringMatching(/Z$/), message: "[builder 1/2] RUN echo hi", level: "info", step: "1" },
    ]);
    expect((await statusOf(api(), ids, "?logsOffset=1&limit=1")).logEntries).toMatchObject([{ message: "quiet" }]);
    const layers = [`sha256:${"c".repeat(64)}`, `sha256:${"d".repeat(64)}`];
    node.builds.succeed(ids.buildID, { layers, user: "root", workdir: "/app", start: { command: "serve", ready: "" } });
    expect(await ended(api(), ids)).toMatchObject({ status: "ready", logs: [], logEntries: [{}, {}] });
    await waitUntil("the node has forgotten it", () => node.builds.forgotten.includes(ids.buildID));
    const sandbox = await api().create({ templateID: "web:v2" });
    expect(node.held.get(sandbox)?.spec).toMatchObject({
      buildId: ids.buildID,
      layers,
      cpuCount: 1,
      memoryMb: 256,
      defaultUser: "root",
      defaultWorkdir: "/app",
      start: { command: "serve" },
    });
  });

  it("fails with the reason and the step that the node gives", async () => {
    const { node } = api();
    node.builds.holds = true;
    const ids = await startBuild(api(), "web");
    await begun(api(), ids);
    node.builds.say(ids.buildID, "oh", { step: "2", level: "error" });
    node.builds.fail(ids.buildID, "failed to run command 'false': exit status 1", "2");
    const status = await ended(api(), ids);
    const reason = { message: "failed to run command 'false': exit status 1", step: "2", logEntries: [{ message: "oh", level: "error" }] };
    expect(status).toMatchObject({ status: "error", reason });
    expect((await statusOf(api(), ids, "?logsOffset=1")).reason.logEntries).toEqual([]);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "web" } })).status).toBe(404);
  });
});
