import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type BuildDeps, BuildFailure, CHAIN_LIMITS } from "@skerry/builder";
import { tarArchive } from "@skerry/testkit";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { DISK_FULL_MESSAGE } from "@skerry/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BuildsUnderTest, type StepFields, startBuilds, step, type TestBuild } from "./build-under-test.ts";
import { areasInUse } from "./node-under-test.ts";

describe.each(runtimesFor("steps of builds", "runc"))("steps of builds on %s", (runtime) => {
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
    const all = await build(steps.slice(0, 1), { force: true });
    expect(of(all, "not cached")).toEqual(["info 1 [builder 1/1] not cached: forced"]);
    const other = await build(steps.slice(0, 1), { cacheScope: "another-team" });
    expect(of(other, "not cached")).toEqual(["info 1 [builder 1/1] not cached: first build of this template"]);
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

  it("make users where there is a program for it and where there is none, and find them by their number", async () => {
    const build = await builds.build([
      step("USER", "first:users"),
      step("RUN", "id -un; id -gn; cd; pwd"),
      step("RUN", "rm /usr/sbin/useradd /usr/sbin/adduser; printf last:x:77:77::/:/bin/sh >> /etc/passwd", "root"),
      step("USER", "second", "true"),
      step("RUN", "id -un; id -gn; cd; pwd; sudo id -un; ls -A | head -n 1; tail -n 2 /etc/passwd | cut -d : -f 1; stat -c %U ~"),
      step("USER", "77"),
      step("RUN", "id -un"),
      step("USER", "4321"),
      step("RUN", "id -un; id -u"),
      step("WORKDIR", "$HOME/work"),
    ]);
    expect(reason(build)).toBeUndefined();
    expect(output(build)).toEqual(
      "first first /home/first second second /home/second root .bash_logout last second second last user4321 4321".split(" "),
    );
    expect(of(build, "warn 1 [builder 1/10] USER first:users: the group is ignored")).toHaveLength(1);
    expect(build.built?.context).toMatchObject({ user: "user4321", workdir: "/home/user4321/work" });
  });

  it("place uploaded files, and again only when the files change", async () => {
    const upload = async (content: string, filesHash: string) => {
      const archive = tarArchive([
        { path: "app/" },
        { path: "app/main", content, mode: 0o640 },
        { path: "app/sub/" },
        { path: "app/sub/.env", content },
      ]);
      return {
        filesHash,
        archive: await builds.deps.blobs.put(
          (async function* () {
            yield gzipSync(archive);
          })(),
        ),
      };
    };
    const one = await upload("one\n", "1".repeat(64));
    const copy = (files: Pick<StepFields, "filesHash" | "archive">, ...args: string[]) => ({ type: "COPY", args, ...files });
    const copies = (files: Pick<StepFields, "filesHash" | "archive">) => [
      step("ENV", "TARGET", "/srv"),
      copy(files, "app", `\${TARGET}/app`, "", ""),
      copy(files, "app/*", "here", "root:user", "0750"),
      step("RUN", "cat /srv/app/main here/sub/.env; stat -c '%U:%G %a' /srv/app/main here/main"),
    ];
    const first = await builds.build(copies(one), { templateId: "copies" });
    expect(reason(first)).toBeUndefined();
    // The last one is below the home directory, which belongs to its user in the end.
    expect(output(first)).toEqual(["one", "one", "user:user 640", "root:user 750"]);
    const same = await builds.build(copies({ ...one, archive: `sha256:${"0".repeat(64)}` }), { templateId: "copies" });
    expect(same.sandboxes).toBe(0);
    const changed = await builds.build(copies(await upload("two\n", "2".repeat(64))), { templateId: "copies" });
    expect(of(changed, "not cached")[0]).toBe("info 2 [builder 2/4] not cached: the files changed");
    expect(output(changed).slice(0, 2)).toEqual(["two", "two"]);

    const fails = async (...args: Parameters<typeof copy>) => reason(await builds.build([copy(...args)]))?.message;
    expect(await fails(one, "missing", "/x")).toMatch(/^failed to move files in sandbox: /);
    expect(await fails({ filesHash: "3".repeat(64), archive: "" }, "app", "/x")).toMatch(/^the files of this step were not uploaded/);
    expect(await fails({ filesHash: "3".repeat(64), archive: `sha256:${"0".repeat(64)}` }, "app", "/x")).toMatch(
      /^the files of this step are gone/,
    );
    const garbage = await builds.deps.blobs.put(
      (async function* () {
        yield Buffer.alloc(5_000, "x");
      })(),
    );
    expect(await fails({ filesHash: "4".repeat(64), archive: garbage }, "app", "/x")).toMatch(/^failed to extract files: /);
  });

  it("end as a template that sandboxes can use: home, /code and /usr/local belong to everybody", async () => {
    const prepare =
      "mkdir -p /etc/skel/more /usr/local/x/y && echo skel > /etc/skel/more/a && touch /home/user/of-root /usr/local/x/file && chmod 750 /usr/local/x && truncate -s 100M /home/user/large";
    const build = await builds.build([step("RUN", prepare, "root")]);
    expect(reason(build)).toBeUndefined();
    expect(of(build, "warn finalize")).toEqual([expect.stringContaining("/home/user/large is large and keeps its owner")]);
    const layers = build.built?.layers ?? [];
    const look =
      "stat -c '%n %U %a' /home/user/of-root /home/user/large /home/user/more/a /code /usr/local/x /usr/local/x/y /usr/local/x/file";
    const child = await builds.build([step("RUN", look)], { source: { case: "template", value: { name: "first", layers: [...layers] } } });
    expect(output(child)).toEqual([
      "/home/user/of-root user 644",
      "/home/user/large root 644",
      "/home/user/more/a user 644",
      "/code root 777",
      "/usr/local/x root 777",
      "/usr/local/x/y root 777",
      "/usr/local/x/file root 644",
    ]);
    expect(child.built?.layers).toEqual(layers);
  });

  it("of a template based on another one begin with its variables and directory, and as the default user", async () => {
    const context = { user: "root", workdir: "/opt", env: { FROM_PARENT: "yes" } };
    const source = { case: "template" as const, value: { name: "parent", layers: [...builds.base], context } };
    const child = await builds.build([step("RUN", "id -un; pwd; echo $FROM_PARENT")], { source });
    expect(of(child, "CACHED [base] FROM TEMPLATE parent")).toHaveLength(1);
    expect(of(child, "info base CACHED [base] DEFAULT USER user")).toHaveLength(1);
    expect(output(child)).toEqual(["user", "/opt", "yes"]);
    const old = await builds.build([step("RUN", "id -un")], { source, withoutDefaultUser: true });
    expect(output(old)).toEqual(["root"]);
    expect(old.built?.context).toEqual({ user: "user", workdir: "", env: context.env });
    for (const missing of [{ layers: [`sha256:${"0".repeat(64)}`] }, { imageId: "0123456789abcdef0123" }]) {
      const gone = { ...source, value: { ...source.value, ...missing } };
      expect(reason(await builds.build([], { source: gone }))).toEqual({
        step: "base",
        message: "error getting base template, you may need to rebuild it first",
      });
    }
  });

  it("leave their variables and directory to the start command, and a template based on this one runs it again", async () => {
    const commands = { startCommand: "echo $E in $PWD > /tmp/started; echo up; sleep 1000", readyCommand: "grep '1 in /srv' /tmp/started" };
    const parent = await builds.build([step("ENV", "E", "1"), step("WORKDIR", "/srv")], commands);
    expect(reason(parent)).toBeUndefined();
    const said = ["Running start command: ", "Waiting for template to be ready: grep", "Template is ready", "Build finished"];
    const places = said.map((text) => parent.log.findIndex((line) => line.includes(text)));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(of(parent, "[start] [stdout]: up")).toHaveLength(1);
    const value = { name: "parent", layers: [...(parent.built?.layers ?? [])], ...(parent.built?.start && { start: parent.built.start }) };
    const child = await builds.build([], { source: { case: "template", value } });
    expect(child.built?.start).toEqual(parent.built?.start);
    expect(child.built?.start).toMatchObject({ workdir: "/srv", env: { E: "1" } });
    const failing = await builds.build([], { startCommand: "exit 3", readyCommand: "false" });
    expect(reason(failing)).toMatchObject({ step: "finalize", message: expect.stringMatching(/^start command failed: .*exit status 3$/) });
  });

  it("may be many: the chain of layers stays short, and means the same", async () => {
    const count = scaled("steps of a long build", { sample: 6, full: 150 });
    const chainLimits = count < 100 ? { most: 3, merged: 2 } : CHAIN_LIMITS;
    const steps = Array.from({ length: count }, (_, index) =>
      step("RUN", `echo ${index} > n${index}; rm -f n${index - 2}; echo ${index} >> all; rm -rf d; mkdir d; touch d/${index}`),
    );
    const build = await builds.build(steps, {}, { chainLimits });
    expect(reason(build)).toBeUndefined();
    expect(build.built?.layers.length).toBeLessThanOrEqual(chainLimits.most + 1);
    const again = await builds.build([...steps, step("RUN", "ls; wc -l < all; ls d")], {}, { chainLimits });
    expect(output(again)).toEqual(["all", "d", `n${count - 2}`, `n${count - 1}`, String(count), String(count - 1)]);
    expect(of(again, "CACHED [builder")).toHaveLength(count);
  }, 900_000);

  it("that write without end fill neither memory nor the log", async () => {
    const build = await builds.build([
      step("RUN", "yes 'a line of output' | head -n 300000; printf %100000d 1; echo; echo the end; exit 3"),
    ]);
    expect(reason(build)?.message).toMatch(/exit status 3$/);
    expect(build.log.length).toBeLessThan(6_000);
    expect(of(build, "lines were left out")).toHaveLength(1);
    expect(build.log.at(-2)).toContain("[stdout]: the end");
    expect(Math.max(...build.log.map((line) => line.length))).toBeLessThan(5_000);
  });

  it("end when their build is cancelled, and leave nothing", async () => {
    for (const reasonOf of [undefined, new BuildFailure("the time is up", { step: "" })]) {
      const cancelled = new AbortController();
      const log: BuildDeps["log"] = ({ message }) => {
        if (message.includes("[stdout]: begun")) cancelled.abort(reasonOf);
      };
      const build = await builds.build([step("RUN", "echo begun; sleep 600")], {}, { signal: cancelled.signal, log });
      expect(reason(build)).toEqual({ step: "", message: reasonOf ? "the time is up" : "build was cancelled" });
    }
    expect(areasInUse(builds.under)).toEqual([]);
  });

  it("that are built twice at once both succeed", async () => {
    // The last two are the same: each is run, although the first one changes nothing.
    const steps = [step("RUN", "echo both > both"), step("RUN", "cat both"), step("RUN", "cat both")];
    const both = await Promise.all([builds.build(steps), builds.build(steps)]);
    expect(both.map(reason)).toEqual([undefined, undefined]);
    expect(both.map(output)).toEqual([
      ["both", "both"],
      ["both", "both"],
    ]);
    expect((await builds.build(steps)).sandboxes).toBe(0);
  });

  it("are run again when their layer is gone or their result is damaged", async () => {
    const steps = [step("RUN", "echo gone > gone")];
    const { built } = await builds.build(steps, { templateId: "gone", cacheScope: "gone" });
    const dir = join(builds.under.config.dir, "../build-cache");
    for (const file of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
      if (file.endsWith(".json") && !file.includes("trails")) writeFileSync(join(dir, file), "{");
    }
    const damaged = await builds.build(steps, { templateId: "gone", cacheScope: "gone" });
    expect(of(damaged, "not cached: its cached result is gone")).toHaveLength(1);
    for (const layer of damaged.built?.layers ?? []) if (!builds.base.includes(layer)) await builds.deps.layers.remove(layer, () => false);
    const removed = await builds.build(steps, { templateId: "gone", cacheScope: "gone" });
    expect(of(removed, "not cached: its cached result is gone")).toHaveLength(1);
    expect(built?.layers).toHaveLength(removed.built?.layers.length ?? 0);
  });

  it("say when it is the machine that failed", async () => {
    const failing = (error: Error) => ({ host: { ...builds.deps.host, startSandbox: () => Promise.reject(error) } });
    const [first = {}] = [step("RUN", "echo never")];
    const internal = await builds.build([first], {}, failing(new Error("a secret of the machine")));
    expect(reason(internal)).toEqual({
      step: "",
      message: "An internal error occurred. Please try again or contact support with the build ID.",
    });
    expect(internal.log.join()).not.toContain("secret");
    const full = await builds.build([first], {}, failing(Object.assign(new Error("write"), { code: "ENOSPC" })));
    expect(reason(full)).toEqual({ step: "1", message: DISK_FULL_MESSAGE });
  });
});
