import { Code, ConnectError } from "@connectrpc/connect";
import { refusalOf } from "@skerry/testkit/fake-builds";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { begun, ended, type Ids, requestBuild, startBuild, statusOf, trigger } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const HOUR_MS = 3_600_000;

describeOnEachDatabase("builds", { inSample: "both", nodes: 2 }, (api) => {
  const owned = (ids: Ids) => api().store.builds.find(ids.buildID);
  const nodeOf = (ids: Ids) => {
    const found = api().nodes.find(({ builds }) => builds.held.has(ids.buildID));
    if (!found) throw new Error("no node has the build");
    return found;
  };
  const hold = () => {
    for (const { builds } of api().nodes) builds.holds = true;
  };
  const startedOn = (index: number) => api().nodes[index]?.builds.started.map(({ buildId }) => buildId) ?? [];
  const forgotten = (ids: Ids) => waitUntil("no node has it", () => api().nodes.every(({ builds }) => !builds.held.has(ids.buildID)));

  it("with overlapping tags replace each other: waiting ones at the request, running ones at the start", async () => {
    hold();
    const waiting = await requestBuild(api(), "web:v1", { tags: ["v2"] });
    const other = await requestBuild(api(), "web:v3");
    const running = await requestBuild(api(), "web:v2");
    const message = "The build was canceled because it was superseded by a newer one.";
    expect(await statusOf(api(), waiting)).toMatchObject({ status: "error", reason: { message } });
    expect((await trigger(api(), waiting)).body.message).toBe("build is not in waiting state");
    await trigger(api(), running);
    await trigger(api(), other);
    await Promise.all([begun(api(), running), begun(api(), other)]);
    const next = await requestBuild(api(), "web:v2", { tags: ["v9"] });
    expect((await statusOf(api(), running)).status).toBe("building");
    await trigger(api(), next);
    const status = await statusOf(api(), running);
    expect(status).toMatchObject({ status: "error", reason: { message: "build was cancelled" } });
    expect(status.reason.step).toBeUndefined();
    expect(status.logEntries.at(-1)).toMatchObject({ message: "Build failed: build was cancelled", level: "error" });
    await forgotten(running);
    await begun(api(), next);
    expect((await statusOf(api(), other)).status).toBe("building");
    for (const ids of [other, next]) nodeOf(ids).builds.succeed(ids.buildID);
    expect([(await ended(api(), other)).status, (await ended(api(), next)).status]).toEqual(["ready", "ready"]);
  });

  it("of one name that are started at once end in one that runs", async () => {
    hold();
    const all: Ids[] = [];
    for (let each = 0; each < 4; each += 1) all.push(await requestBuild(api(), "web", {}));
    const answers = await Promise.all(all.map((ids) => trigger(api(), ids)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 400, 400, 400]);
  });

  it("are spread over the nodes, as many at once as allowed, and the teams take turns", async () => {
    hold();
    const otherTeam = { key: api().otherKey };
    const mine: Ids[] = [];
    for (const name of ["a", "b", "c", "d", "e", "f"]) mine.push(await startBuild(api(), name));
    await waitUntil("four run", () => startedOn(0).length + startedOn(1).length === 4);
    expect(startedOn(0)).toHaveLength(2);
    const others = [await startBuild(api(), "a", undefined, otherTeam), await startBuild(api(), "b", undefined, otherTeam)];
    const order: string[] = [];
    for (let each = 0; each < 4; each += 1) {
      const before = new Set([...startedOn(0), ...startedOn(1)]);
      const running = mine.find(({ buildID }) => api().nodes.some(({ builds }) => builds.held.get(buildID)?.isOver === false));
      if (!running) throw new Error("none runs");
      nodeOf(running).builds.succeed(running.buildID);
      const next = () => [...startedOn(0), ...startedOn(1)].find((id) => !before.has(id));
      await waitUntil("the next one begins", () => next() !== undefined);
      order.push(next() ?? "");
    }
    expect(order).toEqual([others[0]?.buildID, others[1]?.buildID, mine[4]?.buildID, mine[5]?.buildID]);
  });

  it("wait when a node has no room, and begin when it has", async () => {
    hold();
    for (const { builds } of api().nodes) builds.room = 0;
    const ids = await startBuild(api(), "web");
    await waitUntil("both were asked", () => api().nodes.every(({ builds }) => builds.asked > 1));
    await waitUntil("it is in the queue", async () => (await owned(ids))?.beganAt === undefined);
    expect((await statusOf(api(), ids)).status).toBe("building");
    for (const { builds } of api().nodes) builds.room = 1;
    await begun(api(), ids);
    nodeOf(ids).builds.succeed(ids.buildID);
    expect((await ended(api(), ids)).status).toBe("ready");
    expect((await owned(ids))?.attempts).toBe(1);
  });

  it("are followed on after connections broke and answers were lost, without a line lost or doubled", async () => {
    hold();
    for (const { builds } of api().nodes) builds.losesStarts = 2;
    const ids = await startBuild(api(), "web");
    await begun(api(), ids);
    const { builds } = nodeOf(ids);
    for (let each = 0; each < 30; each += 1) {
      builds.say(ids.buildID, `line ${each}`);
      if (each % 7 === 3) builds.disconnect();
      if (each === 20) builds.silence = new ConnectError("silent", Code.Unavailable);
      if (each % 5 === 0 && each < 20)
        await waitUntil("it is stored", async () => (await statusOf(api(), ids)).logEntries.length === each + 1);
    }
    builds.silence = undefined;
    builds.succeed(ids.buildID);
    const { logEntries } = await ended(api(), ids);
    expect(logEntries.map(({ message }: { message: string }) => message)).toEqual(Array.from({ length: 30 }, (_, each) => `line ${each}`));
  });

  it("start again when their node was restarted, but not for ever", async () => {
    hold();
    const ids = await startBuild(api(), "web");
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await waitUntil(`attempt ${attempt}`, () => api().nodes.flatMap(({ builds }) => builds.started).length === attempt);
      await begun(api(), ids);
      const { builds } = nodeOf(ids);
      builds.say(ids.buildID, `attempt ${attempt}`);
      await waitUntil("its line is there", async () =>
        (await statusOf(api(), ids)).logEntries.some((line: { message: string }) => line.message === `attempt ${attempt}`),
      );
      builds.restart();
    }
    const { status, reason, logEntries } = await ended(api(), ids);
    expect({ status, reason }).toMatchObject({ status: "error", reason: { message: expect.stringMatching(/interrupted too often/) } });
    const messages = logEntries.map(({ message }: { message: string }) => message);
    const restarted = expect.stringMatching(/^The machine of this build was restarted/);
    expect(messages).toEqual(["attempt 1", restarted, "attempt 2", restarted, "attempt 3", expect.stringMatching(/^Build failed: /)]);
  });

  it("whose time is over fail, wherever they are", async () => {
    hold();
    const running: Ids[] = [];
    for (const name of ["a", "b", "c", "d"]) running.push(await startBuild(api(), name));
    await Promise.all(running.map((ids) => begun(api(), ids)));
    const queued = await startBuild(api(), "e");
    const waiting = await requestBuild(api(), "f");
    const later = (ms: number) => ({ now: () => api().store.clock.now() + ms });
    const inTime = async (ms: number) => {
      await using other = await api().createApi({ ownerId: `later${ms}` }, later(ms));
      await other.buildRound();
    };
    await inTime(39 * 60_000);
    expect((await statusOf(api(), waiting)).status).toBe("waiting");
    await inTime(41 * 60_000);
    expect((await statusOf(api(), waiting)).reason.message).toBe("build is in waiting state for too long");
    await inTime(HOUR_MS + 10_000);
    for (const ids of running) {
      expect((await statusOf(api(), ids)).reason.message).toBe("build status polling timed out. Maximum build time is 1h0m0s.");
      await forgotten(ids);
    }
    expect((await statusOf(api(), queued)).status).toBe("building");
    for (const { builds } of api().nodes) builds.room = 0;
    await inTime(7 * HOUR_MS);
    expect((await statusOf(api(), queued)).status).toBe("error");
  });

  it("of a template that is deleted end", async () => {
    hold();
    const running = await startBuild(api(), "web:a");
    const waiting = await requestBuild(api(), "web:b");
    await begun(api(), running);
    expect((await api().call("DELETE", `/templates/${running.templateID}`)).status).toBe(204);
    await forgotten(running);
    for (const ids of [running, waiting]) await waitUntil("it has ended", async () => (await owned(ids))?.status === "error");
  });

  it("store the beginning and the end of a log without end", async () => {
    hold();
    const ids = await startBuild(api(), "web");
    await begun(api(), ids);
    const { builds } = nodeOf(ids);
    for (let each = 0; each < 300; each += 1) builds.say(ids.buildID, `${each} \0${"x".repeat(20_000)}`);
    await waitUntil("they are read", async () => ((await owned(ids))?.eventsRead ?? 0) === 300);
    for (let each = 0; each < 300; each += 1) builds.say(ids.buildID, `${each + 300} ${"x".repeat(20_000)}`);
    for (let each = 0; each < 250; each += 1) builds.say(ids.buildID, `tail ${each}`);
    builds.fail(ids.buildID, "exit status 1", "1");
    await ended(api(), ids);
    const { lines, characters } = await api().store.buildLogs.size(ids.buildID);
    expect(lines).toBeLessThan(800);
    expect(characters).toBeLessThan(4.5 * 1024 * 1024);
    const last = await api().store.buildLogs.window(ids.buildID, {
      cursor: undefined,
      direction: "backward",
      minLevel: "debug",
      limit: 202,
    });
    expect(last[0]?.message).toBe("tail 249");
    expect(last[199]?.message).toBe("tail 50");
    expect(last[200]?.message).toMatch(/^\d+ lines were left out$/);
    const [first] = await api().store.buildLogs.page(ids.buildID, { minLevel: "debug", offset: 0, limit: 1 });
    expect(first?.message).toHaveLength(8_193);
    expect(first?.message.slice(0, 4)).toBe("0 \uFFFDx");
  });
});

describeOnEachDatabase("what a build is based on", { inSample: "sqlite", nodes: 2 }, (api) => {
  const startedOf = (ids: Ids) =>
    api()
      .nodes.flatMap(({ builds }) => builds.started)
      .find(({ buildId }) => buildId === ids.buildID);

  it("can be another template: its layers, context and start command, on the node that has them", async () => {
    for (const { builds } of api().nodes) builds.holds = true;
    const parent = await startBuild(api(), "parent:v1");
    await begun(api(), parent);
    const [index] = api().nodes.flatMap(({ builds }, each) => (builds.held.has(parent.buildID) ? [each] : []));
    const start = { command: "serve", ready: "true" };
    api().nodes[index ?? 0]?.builds.succeed(parent.buildID, { user: "app", workdir: "/app", env: { A: "1" }, start });
    await ended(api(), parent);
    for (let each = 0; each < 2; each += 1) {
      const child = await startBuild(api(), `child:v${each}`, { fromTemplate: "parent:v1" });
      await begun(api(), child);
      const context = { user: "app", workdir: "/app", env: { A: "1" } };
      expect(startedOf(child)?.source).toMatchObject({
        case: "template",
        value: {
          name: "parent:v1",
          buildId: parent.buildID,
          layers: [`sha256:${"b".repeat(64)}`],
          imageId: "",
          context,
          start: { ...context, ...start },
        },
      });
      expect(api().nodes[index ?? 0]?.builds.held.has(child.buildID)).toBe(true);
    }
    const seeded = await startBuild(api(), "seeded", { fromTemplate: "base" });
    await begun(api(), seeded);
    expect(startedOf(seeded)?.source).toMatchObject({ value: { context: { user: "user", workdir: "/home/user", env: {} } } });
  });

  it("can be a snapshot, on the node that has its image", async () => {
    const sandbox = await api().create();
    const { body } = await api().call("POST", `/sandboxes/${sandbox}/snapshots`, { body: { name: "snap" } });
    const [holder] = api().nodes.filter(({ images }) => images.size === 1);
    const ids = await startBuild(api(), "web", { fromTemplate: body.snapshotID });
    expect((await ended(api(), ids)).status).toBe("ready");
    expect(holder?.builds.started[0]?.source).toMatchObject({ value: { layers: [], imageId: [...(holder?.images.keys() ?? [])][0] } });
  });

  it.each([
    ["nothing", "template 'nothing' not found"],
    ["base:v9", "tag 'v9' does not exist for template 'base'"],
    ["a b", expect.stringMatching(/^invalid template reference: /)],
    ["private", "template 'private' not found"],
  ])("fails the build, not the request, when there is no %s", async (fromTemplate, message) => {
    await startBuild(api(), "private", undefined, { key: api().otherKey });
    const ids = await startBuild(api(), "web", { fromTemplate });
    const reason = { message, step: "base", logEntries: [expect.objectContaining({ level: "error", step: "base" })] };
    expect(await ended(api(), ids)).toMatchObject({ status: "error", reason });
  });

  it.each([
    ["layer_missing", { fromTemplate: "base" }, "error getting base template, you may need to rebuild it first", "base"],
    ["internal", { fromTemplate: "base" }, "An internal error occurred. Please try again or contact support with the build ID.", undefined],
    [
      "invalid_argument",
      { fromImage: "x" },
      "An internal error occurred. Please try again or contact support with the build ID.",
      undefined,
    ],
  ] as const)("fails the build when its node refuses it with %s", async (code, source, message, step) => {
    for (const { builds } of api().nodes) builds.refusal = refusalOf(code);
    const { reason } = await ended(api(), await startBuild(api(), "web", source));
    expect({ message: reason.message, step: reason.step }).toEqual({ message, step });
  });

  it("can need credentials, which reach the node and nothing else", async () => {
    for (const { builds } of api().nodes) builds.holds = true;
    const all = [
      [
        { type: "registry", username: "me", password: "hush-1" },
        { case: "basic", value: { username: "me", password: "hush-1" } },
      ],
      [
        { type: "aws", awsAccessKeyId: "id", awsSecretAccessKey: "hush-2", awsRegion: "eu" },
        { case: "aws", value: { accessKeyId: "id", secretAccessKey: "hush-2", region: "eu" } },
      ],
      [
        { type: "gcp", serviceAccountJson: "hush-3" },
        { case: "gcp", value: { serviceAccountJson: "hush-3" } },
      ],
    ] as const;
    for (const [fromImageRegistry, credentials] of all) {
      const ids = await startBuild(api(), "web", { fromImage: "r.example/x", fromImageRegistry });
      await begun(api(), ids);
      expect(startedOf(ids)?.source.value).toMatchObject({ credentials });
      const stored = JSON.stringify(await api().store.builds.find(ids.buildID));
      expect(stored).toContain("r.example/x");
      expect(stored).not.toContain("hush");
    }
  });
});

describeOnEachDatabase("builds of several API processes", { inSample: "both", timing: { beatMs: 50, deadAfterMs: 2_000 } }, (api) => {
  it("are followed by one process, and by another one when that has ended", async () => {
    const { builds } = api().node;
    builds.holds = true;
    await using second = await api().createSecond({ timing: { beatMs: 50, deadAfterMs: 2_000, buildRoundMs: 20, buildRetryMs: 20 } });
    await second.listen();
    const ids = await startBuild(api(), "web");
    const queued = await requestBuild(api(), "queued");
    await begun(api(), ids);
    builds.say(ids.buildID, "one");
    await waitUntil("it is stored", async () => (await statusOf(api(), ids)).logEntries.length === 1);
    const before = (await api().store.builds.find(ids.buildID))?.owner;
    for (let round = 0; round < 20; round += 1) await second.buildRound();
    expect(builds.mostWatchers).toBe(1);
    expect((await api().store.builds.find(ids.buildID))?.owner).toBe(before);
    builds.room = 1;
    await trigger(api(), queued);
    await api().api.close();
    await waitUntil("the other process follows it", async () => (await api().store.builds.find(ids.buildID))?.owner !== before);
    builds.say(ids.buildID, "two");
    builds.succeed(ids.buildID);
    await waitUntil("it is ready", async () => (await api().store.builds.find(ids.buildID))?.status === "ready");
    const lines = await api().store.buildLogs.page(ids.buildID, { minLevel: "debug", offset: 0, limit: 9 });
    expect(lines.map(({ message }) => message)).toEqual(["one", "two"]);
    await begun(api(), queued);
    builds.succeed(queued.buildID);
    await waitUntil("the other one is ready", async () => (await api().store.builds.find(queued.buildID))?.status === "ready");
    expect(builds.mostWatchers).toBe(1);
  });
});
