import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createLogger, systemClock } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { type BuildFailure, type BuiltTemplate, openStepCache, runBuild } from "@skerry/builder";
import { startRegistry, type TarEntry, type TestRegistry, tarArchive } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { BuildSpecSchema } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

type Line = { readonly level: string; readonly step: string; readonly message: string };

describe.each(runtimesFor("images of builds"))("images that builds start from on %s", (runtime) => {
  let under: NodeUnderTest;
  let registry: TestRegistry;
  let dir: string;
  beforeAll(async () => {
    [under, registry] = await Promise.all([startNode(runtime), startRegistry()]);
    dir = mkdtempSync(join(under.config.dir, "builds-"));
    for (const name of ["pull", "blobs"]) mkdirSync(join(dir, name), { mode: 0o700 });
  });
  afterAll(async () => {
    await registry?.stop();
    await under?.[Symbol.asyncDispose]();
  });

  let count = 0;
  /** Runs the command in a template that is made of the image, and returns what it printed. */
  async function build(reference: string, command = "", given: { scope?: string; force?: boolean } = {}) {
    const logger = createLogger({ name: "build-images", level: "error", fd: 2 });
    const { layers } = under.config;
    const log: Line[] = [];
    const buildId = `b${++count}`;
    const spec = create(BuildSpecSchema, {
      buildId,
      templateId: "t",
      cacheScope: given.scope ?? "team",
      source: { case: "image", value: { reference } },
      steps: command === "" ? [] : [{ type: "RUN", args: [command] }],
      force: given.force ?? false,
      cpuCount: 1,
      memoryMb: 512,
      diskSizeMb: 256,
    });
    const cache = await openStepCache({ dir: join(dir, "cache"), layers, keepMs: 60_000_000, clock: systemClock, logger });
    const built = await runBuild(spec, {
      host: under.node.buildHost,
      layers,
      blobs: await openFolderBlobStore(join(dir, "blobs")),
      cache,
      images: { pullDir: join(dir, "pull") },
      log: (line) => void log.push(line),
      signal: new AbortController().signal,
    }).then(
      (template: BuiltTemplate) => ({ template, failure: undefined }),
      (failure: BuildFailure) => ({ template: undefined, failure }),
    );
    const texts = log.map(({ message }) => message);
    const output = texts.filter((text) => text.includes("[stdout]: ")).map((text) => text.replace(/^.*\[stdout\]: /, ""));
    return { ...built, log, texts, output };
  }

  const busybox = readFileSync("/bin/busybox");
  const shell: readonly TarEntry[] = [
    { path: "bin/" },
    { path: "bin/busybox", content: busybox, mode: 0o755 },
    ...["sh", "cat", "mkdir", "chmod", "cp"].map((name) => ({ path: `bin/${name}`, type: "symlink" as const, target: "busybox" })),
  ];
  const bash: readonly TarEntry[] = [...shell, { path: "bin/bash", content: readFileSync("/bin/bash-static"), mode: 0o755 }];
  const push = (name: string, entries: readonly TarEntry[], config = {}) =>
    registry.push(`${name}:1`, { layers: [tarArchive(entries)], config });

  it("make a template of a scratch image: bash and busybox are brought to it, and the log says what it lacks", async () => {
    const reference = await push("scratch", [{ path: "hello", content: "of the image\n" }], { Env: ["PATH=/opt/app", "KIND=scratch"] });
    const { template, failure, output, texts } = await build(
      reference,
      "cat /hello; id -un; echo $KIND $PATH; pwd; httpd -p 8080; ss -Htuln sport = :8080; ss -Htuln sport = :8081",
    );
    expect(failure).toBeUndefined();
    expect(output).toEqual([
      "of the image",
      "user",
      "scratch /opt/app:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "/home/user",
      "tcp LISTEN 0 0 *:8080 *:*",
    ]);
    expect(template?.context).toMatchObject({ user: "user", env: { KIND: "scratch", PATH: "/opt/app" } });
    expect(texts).toEqual(expect.arrayContaining([expect.stringMatching(/^The image has no sudo/)]));
    expect(texts.find((text) => text.startsWith("[base] FROM"))).toMatch(new RegExp(`^\\[base\\] FROM ${reference} \\[[0-9a-f]{64}\\]$`));

    const again = await build(reference);
    expect(again.texts.filter((text) => text.includes("[base]")).map((text) => text.split(" ").slice(0, 3).join(" "))).toEqual([
      "CACHED [base] FROM",
      "CACHED [base] DEFAULT",
    ]);
  });

  it("make a template of a distroless image, and keep its users and its certificates", async () => {
    const reference = await push("distroless", [
      { path: "etc/" },
      { path: "etc/os-release", content: 'PRETTY_NAME="Distroless"\nID=debian\n' },
      { path: "etc/passwd", content: "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:1000:1000:nonroot:/home/nonroot:/sbin/nologin\n" },
      { path: "etc/group", content: "root:x:0:\nnonroot:x:1000:\n" },
      { path: "etc/ssl/certs/ca-certificates.crt", content: "those of the image\n" },
      // A link, as where /bin and /usr/bin are one directory.
      { path: "bin", type: "symlink", target: "usr/bin" },
      { path: "usr/bin/" },
      { path: "usr/bin/app", content: "#!/bin/sh\necho app\n", mode: 0o755 },
    ]);
    const { failure, output, texts } = await build(
      reference,
      "app; id; cat /etc/ssl/certs/ca-certificates.crt; ls -l /usr/bin/bash | wc -l",
    );
    expect(failure).toBeUndefined();
    expect(output).toEqual(["app", "uid=1001(user) gid=1001(user) groups=1001(user)", "those of the image", "1"]);
    expect(texts.filter((text) => text.startsWith("The image has no ca-certificates"))).toEqual([]);
  });

  it("install what is missing with the distribution's own program, and say why that failed", async () => {
    const apk = (script: string): readonly TarEntry[] => [
      ...shell,
      { path: "etc/os-release", content: "ID=alpine\nPRETTY_NAME='Alpine Linux'\n" },
      { path: "sbin/" },
      { path: "sbin/apk", content: `#!/bin/sh\n${script}\n`, mode: 0o755 },
    ];
    const installs = `echo "apk $*"; mkdir -p /usr/bin; for name in bash sudo curl ss pgrep git; do
      echo '#!/bin/sh' > /usr/bin/$name; echo 'exec /bin/sh "$@"' >> /usr/bin/$name; chmod 755 /usr/bin/$name; done`;
    const good = await build(await push("alpine", apk(installs)), "true; exit 3");
    expect(good.texts).toEqual(
      expect.arrayContaining([
        "Installing bash, sudo, ca-certificates, curl, iproute2, procps, git with apk",
        "apk add --no-cache bash sudo ca-certificates curl iproute2 procps git",
        "Sandbox template provisioned",
      ]),
    );
    expect(good.failure?.step).toBe("1");

    const bad = await build(await push("offline", apk("echo fetching; echo ERROR: no network >&2; exit 7")));
    expect(bad.failure).toMatchObject({
      step: "base",
      message: "error waiting for provisioning sandbox: exit status 7; provisioning output tail:\nfetching\nERROR: no network",
    });
  });

  it("are found in the cache by what their name points to, by one team, unless the build is forced", async () => {
    const first = await push("moving", [...bash, { path: "version", content: "1" }]);
    const fromLine = ({ texts }: { texts: readonly string[] }) => texts.find((text) => text.includes("[base] FROM"));
    const one = await build(first, "cat /version");
    expect(one.output).toEqual(["1"]);
    expect(fromLine(await build(first))).toMatch(/^CACHED /);
    expect(fromLine(await build(first, "", { scope: "another-team" }))).not.toMatch(/^CACHED /);
    expect(fromLine(await build(first, "", { force: true }))).not.toMatch(/^CACHED /);
    await push("moving", [...bash, { path: "version", content: "2" }]);
    const two = await build(first, "cat /version");
    expect([fromLine(two)?.startsWith("CACHED"), two.output]).toEqual([false, ["2"]]);
  });

  it("that cannot be had end the build with the reason", async () => {
    const there = await push("there", [{ path: "hello", content: "1" }]);
    const reasons = async (reference: string) => {
      const { failure } = await build(reference);
      return [failure?.step, failure?.message];
    };
    const absent = there.replace(/:1$/, ":2");
    expect(await reasons(absent)).toEqual(["base", `image '${absent}' not found: the image or tag does not exist in the registry`]);
    expect(await reasons("Not An Image")).toEqual(["base", expect.stringMatching(/^not a reference to an OCI image/)]);
    const other = await registry.push("s390x:1", { layers: [tarArchive([])], architecture: "s390x" });
    const architecture = expect.stringMatching(/^image architecture "s390x" does not match expected "(amd64|arm64)"$/);
    expect(await reasons(other)).toEqual(["base", architecture]);
    expect(await reasons("127.0.0.1:1/app")).toEqual([
      "base",
      "failed to pull image '127.0.0.1:1/app': unable to retrieve image from registry: the registry can't be reached",
    ]);
  });
});
