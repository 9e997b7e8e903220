import { runtimesFor } from "@skerry/testkit/depth";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BuildsUnderTest, startBuilds, step, type TestBuild } from "./build-under-test.ts";
import { areasInUse } from "./node-under-test.ts";

describe.each(runtimesFor("steps of builds"))("steps of builds on %s", (runtime) => {
  let builds: BuildsUnderTest;
  beforeAll(async () => {
    builds = await startBuilds(runtime);
  });
  afterAll(() => builds?.[Symbol.asyncDispose]());

  /** What a command printed. */
  const output = ({ log }: TestBuild) => log.flatMap((line) => /\[stdout\]: (.*)$/s.exec(line)?.[1] ?? []);
  const of = ({ log }: TestBuild, part: string) => log.filter((line) => line.includes(part));
  const reason = ({ failure }: TestBuild) => failure && { step: failure.step, message: failure.message };

  it("leave files, variables, a directory and a user to the next ones", async () => {
    const steps = [
      step("ENV", "GREETING", "Hello, World!", "ODD", 'a "b" \\ $(id) `id`\nc'),
      step("env", "PATH", `\${PATH}:/extra/bin`, "AGAIN", "$GREETING"),
      step("WORKDIR", "made/by/step"),
      step("RUN", "echo $GREETING > file; pwd; id -un; printenv ODD AGAIN PATH"),
      step("USER", "other"),
      step("RUN", "id -un; cat file; stat -c '%U %a' /made /made/by/step; cd; pwd"),
      step("RUN", "whoami", "root"),
      step("ARG", "NUMBER", "1"),
      step("RUN", 'ls -ld "$HOME"/.bashrc | wc -l; echo $NUMBER'),
    ];
    const build = await builds.build(steps);
    expect(reason(build)).toBeUndefined();
    const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/extra/bin";
    expect(output(build)).toEqual([
      "/made/by/step",
      "user",
      'a "b" \\ $(id) `id`',
      "c",
      "Hello, World!",
      expect.stringContaining(path),
      "other",
      "Hello, World!",
      "user 755",
      "user 755",
      "/home/other",
      "root",
      "1",
      "1",
    ]);
    expect(build.built?.context).toEqual({
      user: "other",
      workdir: "/made/by/step",
      env: { GREETING: "Hello, World!", ODD: 'a "b" \\ $(id) `id`\nc', PATH: path, AGAIN: "Hello, World!", NUMBER: "1" },
    });
    expect(areasInUse(builds.under)).toEqual([]);

    const again = await builds.build(steps);
    expect(again.sandboxes).toBe(0);
    expect(again.built).toEqual(build.built);
    expect(of(again, "info 1 CACHED [builder 1/9] ENV GREETING Hello, World!")).toHaveLength(1);
    expect(of(again, "CACHED [builder 9/9] RUN")).toHaveLength(1);
    expect(of(again, "CACHED [finalize] Finalizing template build")).toHaveLength(1);
    expect(again.log.at(-1)).toMatch(/^info {2}Build finished, took \d\.\ds$/);
  });

  it("are run again when something that they depend on changes, and say why", async () => {
    const steps = [step("RUN", "echo 1 > one"), step("ENV", "A", "1"), step("RUN", "echo 2 > two"), step("RUN", "echo 3 > three")];
    const build = (all: typeof steps, fields = {}) => builds.build(all, { templateId: "why", ...fields });
    const first = await build(steps);
    expect(of(first, "not cached: first build of this template")).toHaveLength(4);
    const changed = await build([...steps.slice(0, 3), step("RUN", "echo 4 > four")]);
    expect(of(changed, "not cached")).toEqual(["info 4 [builder 4/4] not cached: the command changed"]);
    const variable = await build([steps[0] ?? {}, step("ENV", "A", "2"), ...steps.slice(2)]);
    expect(of(variable, "not cached")).toEqual([
      "info 2 [builder 2/4] not cached: the arguments changed",
      "info 3 [builder 3/4] not cached: an earlier step or what it is based on changed",
      "info 4 [builder 4/4] not cached: the command changed",
    ]);
    const forced = await build([steps[0] ?? {}, { ...steps[1], force: true }, ...steps.slice(2)]);
    expect(of(forced, "not cached")).toEqual([2, 3, 4].map((number) => `info ${number} [builder ${number}/4] not cached: forced`));
    const all = await build(steps, { force: true });
    expect(of(all, "not cached: forced")).toHaveLength(4);
    const other = await build(steps, { cacheScope: "another-team" });
    expect(of(other, "CACHED [builder")).toEqual([]);
  });

  it("fail with the words of the specification", async () => {
    const fails = async (...steps: Parameters<typeof step>[]) => reason(await builds.build(steps.map((each) => step(...each))));
    expect(await fails(["ENV", "A", "1"], ["RUN", "exit 2"])).toEqual({
      step: "2",
      message: "failed to run command 'exit 2': exit status 2",
    });
    expect(await fails(["RUN", "whoami", "root123"])).toEqual({
      step: "1",
      message: "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'",
    });
    expect(await fails(["RUN"])).toEqual({ step: "1", message: "RUN requires command argument" });
    expect(await fails(["ENV"])).toMatchObject({ message: "ENV does not support passing no arguments" });
    expect(await fails(["ENV", "A"])).toMatchObject({ message: "ENV requires both a key and value arguments" });
    expect(await fails(["ENV", "A", `\${A!}`])).toMatchObject({
      message: expect.stringMatching(/^failed to evaluate environment variable A: /),
    });
    expect(await fails(["USER"])).toMatchObject({ message: "USER requires a username argument" });
    expect(await fails(["USER", "a/b"])).toMatchObject({ message: expect.stringMatching(/^failed to create user: /) });
    expect(await fails(["WORKDIR"])).toMatchObject({ message: "WORKDIR requires a path argument" });
    expect(await fails(["WORKDIR", "/etc/passwd"])).toMatchObject({ message: "failed to create workdir: exit status 1" });
    expect(await fails(["COPY", "a", "b"])).toMatchObject({ message: "COPY requires files hash to be set" });
    expect(await fails(["HEALTHCHECK", "x"])).toEqual({
      step: "1",
      message: "failed to get command for step HEALTHCHECK: command type HEALTHCHECK is not implemented",
    });
    const failed = await builds.build([step("RUN", "kill -9 $$")]);
    expect(failed.log.at(-1)).toBe("error  Build failed: failed to run command 'kill -9 $$': signal: killed");
    expect(areasInUse(builds.under)).toEqual([]);
  });
});
