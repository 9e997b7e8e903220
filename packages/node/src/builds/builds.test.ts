import { create } from "@bufbuild/protobuf";
import { createLogger } from "@skerry/base";
import { BuildFailure } from "@skerry/builder";
import { BuildSpecSchema } from "@skerry/wire/node";
import { expect, it } from "vitest";
import { Builds, type BuildWork } from "./builds.ts";

const logger = createLogger({ name: "builds", level: "error", fd: 2 });
const never = new AbortController().signal;

function buildsOf(run: (work: BuildWork) => Promise<void>, most = 2) {
  const released: string[] = [];
  const layers = {
    release: (holder: string) => void released.push(holder),
    holders: () => ["build-left", "cluster-1"],
  };
  const builds = new Builds({
    layers,
    most,
    builder: {
      run: async (work) => {
        await run(work);
        return { layers: ["sha256:x"] };
      },
      close: () => {},
    },
    logger,
  });
  const start = (buildId: string) => builds.start(create(BuildSpecSchema, { buildId }));
  const heard = async (buildId: string, from = 0) => {
    const events: string[] = [];
    for await (const { number, event } of builds.watch(buildId, from, never)) {
      const what = event.case === "line" ? event.value.message : event.case === "failed" ? `failed: ${event.value.message}` : event.case;
      events.push(`${number} ${what}`);
    }
    return events;
  };
  return { builds, start, heard, released };
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(new Error("some error of an aborted command"))));

it("numbers what a build says from 0, for several watchers, and for one that comes back", async () => {
  const { start, heard } = buildsOf(async ({ log }) => {
    for (const message of ["one", "two"]) log({ level: "info", step: "1", message });
  });
  start("b");
  start("b");
  const all = ["0 one", "1 two", "2 succeeded"];
  expect(await Promise.all([heard("b"), heard("b")])).toEqual([all, all]);
  expect(await heard("b", 1)).toEqual(all.slice(1));
  expect(await heard("b", 3)).toEqual([]);
});

it("tells the caller why a build failed, and nothing of an internal error", async () => {
  const reasons: Record<string, Error> = { own: new BuildFailure("exit status 1", { step: "2" }), internal: new Error("ENOENT /secret") };
  const { start, heard } = buildsOf(async ({ spec }) => {
    throw reasons[spec.buildId];
  });
  for (const id of Object.keys(reasons)) start(id);
  expect(await heard("own")).toEqual(["0 failed: exit status 1"]);
  expect((await heard("internal"))[0]).toMatch(/^0 failed: An internal error occurred\./);
});

it("runs no more builds than it may, and refuses ids that are none", async () => {
  const { builds, start, heard } = buildsOf(({ signal }) => untilAborted(signal), 2);
  for (const id of ["one", "two"]) start(id);
  expect(() => start("three")).toThrow(expect.objectContaining({ code: "capacity_unavailable" }));
  await builds.cancel("one");
  expect(await heard("one")).toEqual(["0 failed: build was cancelled"]);
  start("three");
  expect(() => start("../one")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  await builds.close();
});

it("forgets a build with its layers, and has never heard of others", async () => {
  const { builds, start, heard, released } = buildsOf(async () => undefined);
  expect(released).toEqual(["build-left"]);
  start("b");
  await heard("b");
  await builds.forget("b");
  expect(released).toContain("build-b");
  await expect(heard("b")).rejects.toMatchObject({ code: "build_missing" });
  await builds.forget("unknown");
  await builds.cancel("unknown");
});

it("ends without an outcome when the node stops, so that the control plane starts the build again", async () => {
  const { builds, start, heard } = buildsOf(({ signal }) => untilAborted(signal));
  start("b");
  const watching = expect(heard("b")).rejects.toMatchObject({ code: "build_missing" });
  await builds.close();
  await watching;
});

it("keeps a part of a log that is too long, with a line that says so, and what matters", async () => {
  const { start, heard } = buildsOf(async ({ log }) => {
    for (let count = 0; count < 100_000; count++) log({ level: "info", step: "1", message: `line ${count}` });
    log({ level: "info", step: "2", message: "the next step" });
    log({ level: "error", step: "1", message: "what matters" });
  });
  start("b");
  const events = await heard("b");
  expect(events.length).toBeLessThan(30_000);
  expect(events.slice(-4).map((event) => event.replace(/^\d+ /, ""))).toEqual([
    "the log of this step is too long: the rest of it is left out",
    "the next step",
    "what matters",
    "succeeded",
  ]);
});
