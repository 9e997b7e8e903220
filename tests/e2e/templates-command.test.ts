// ./skerry templates as a person uses it: from a Dockerfile to a sandbox.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Platform, REGISTRY_USER, startPlatform, startRegistry, type TestRegistry, tarArchive } from "@skerry/testkit";
import { type SkerryAnswer, SkerryCommand } from "@skerry/testkit/skerry-command";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { clientOf } from "./client.ts";

let platform: Platform;
let registry: TestRegistry;
let privateRegistry: TestRegistry;
let image: string;
let privateImage: string;
let dir: string;

beforeAll(async () => {
  [platform, registry, privateRegistry] = await Promise.all([
    startPlatform({ env: { SKERRY_POOL_SIZE: "0" } }),
    startRegistry(),
    startRegistry({ asksForUser: true }),
  ]);
  // `up` would have written the settings, from which the command knows the address of the API.
  const { api, edge } = platform.ports;
  const settings = { runtime: "gvisor", listen: "127.0.0.1", apiPort: api, edgePort: edge, domain: platform.domain };
  writeFileSync(join(platform.dataDir, "settings.json"), JSON.stringify(settings));
  const applets = ["sh", "cat", "ls", "id", "mkdir", "chmod", "chown", "dirname", "stat", "sleep", "sync", "find", "cp"];
  const layer = tarArchive([
    { path: "bin/" },
    { path: "bin/busybox", content: readFileSync("/bin/busybox"), mode: 0o755 },
    ...applets.map((name) => ({ path: `bin/${name}`, type: "symlink" as const, target: "busybox" })),
  ]);
  image = await registry.push("tools:1", { layers: [layer], config: { Env: ["FROM_IMAGE=/from image"] } });
  privateImage = await privateRegistry.push("tools:1", { layers: [layer] });
});
afterAll(async () => {
  rmSync(dir, { recursive: true, force: true });
  await Promise.all([registry?.stop(), privateRegistry?.stop()]);
  await platform?.[Symbol.asyncDispose]();
});

function writeDirectory(files: Record<string, string>): void {
  if (dir) rmSync(dir, { recursive: true });
  dir = mkdtempSync(join(tmpdir(), "skerry-build-directory-"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  }
}

const templates = (...args: string[]) => new SkerryCommand(platform.dataDir).answer("templates", ...args);

/** The lines of steps without their durations. */
const stepsOf = ({ stderr }: SkerryAnswer) =>
  [...stderr.matchAll(/^[✓✗] (\d+\/\d+ .*?) {2}\((CACHED|[\d.]+ s)(.*)\)$/gm)].map(
    ([, title, how, why]) => `${how === "CACHED" ? how : "RAN"}${why} ${title}`,
  );

const DOCKERFILE = `ARG TAG=unset
FROM $TAG
ARG GREETING=hello
ENV WHERE=/srv/app MESSAGE="$GREETING 'you' \\$HOME" FOUND=\${FROM_IMAGE}
WORKDIR $WHERE
COPY src/*.txt docs/ ./
COPY --chmod=600 <<EOF made.txt
made for $GREETING
EOF
RUN echo "$MESSAGE, $FOUND" > message.txt && \\
    # a comment in between
    cat one.txt \\
      two.txt
USER builder
COPY last.txt .
`;
const FILES = {
  Dockerfile: DOCKERFILE,
  "src/one.txt": "1\n",
  "src/two.txt": "2\n",
  "src/no.md": "",
  "docs/deep/page": "p",
  "last.txt": "a",
  ".dockerignore": "*.md\ndocs/secret\n",
  "docs/secret": "s",
};

test("a Dockerfile becomes a template that sandboxes start from", async () => {
  writeDirectory(FILES);
  const built = await templates(
    "build",
    "web",
    dir,
    "--build-arg",
    `TAG=${image}`,
    "--build-arg",
    "GREETING=hi",
    "-t",
    "v1",
    "--memory-mb",
    "512",
  );
  expect(built.exitCode, built.stderr).toBe(0);
  expect(stepsOf(built)).toHaveLength(11);
  expect(built.stderr).toMatch(/^✓ uploaded \d+ files/m);
  expect(built.stderr).toContain('await Sandbox.create("web:v1")');

  const sandbox = await Sandbox.create("web:v1", clientOf(platform));
  try {
    const read = async (command: string) => (await sandbox.commands.run(command, { cwd: "/srv/app" })).stdout;
    expect(await read("id -un; pwd")).toBe("builder\n/srv/app\n");
    expect(await read("ls")).toBe("deep\nlast.txt\nmade.txt\nmessage.txt\none.txt\ntwo.txt\n");
    expect(await read("cat message.txt one.txt deep/page last.txt")).toBe("hi 'you' $HOME, /from image\n1\npa");
    expect(await read("stat -c '%a %U' made.txt last.txt")).toBe("600 root\n644 root\n");
  } finally {
    await sandbox.kill();
  }
});

test("an image of a private registry is pulled with the credentials of a login", async () => {
  const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
  writeDirectory({ Dockerfile: `FROM ${privateImage}\n`, "auth.json": JSON.stringify({ auths: { [privateRegistry.host]: { auth } } }) });
  const denied = await templates("build", "private", dir);
  expect(denied.exitCode).toBe(1);
  expect(denied.stderr).toContain("the build failed at FROM");
  const built = await templates("build", "private", dir, "--registry-auth", join(dir, "auth.json"));
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.stderr).toContain(`pulls ${privateImage} with the credentials of ${privateRegistry.host}`);
  expect(built.stderr).not.toContain(REGISTRY_USER.password);
});

test("what did not change is taken from the cache, and the rest says why it is not", async () => {
  writeDirectory({ ...FILES, "last.txt": "b" });
  const args = ["build", "web:v1", dir, "--build-arg", `TAG=${image}`, "--build-arg", "GREETING=hi", "--memory-mb", "512"];
  const changed = stepsOf(await templates(...args));
  expect(changed.filter((step) => !step.startsWith("CACHED"))).toEqual(["RAN, the files changed 11/11 COPY last.txt . root:root"]);

  const again = await templates(...args);
  expect(stepsOf(again).every((step) => step.startsWith("CACHED"))).toBe(true);
  expect(again.stderr).toContain("11 of 11 steps were cached");
  expect(again.stderr).not.toContain("uploaded");
});

test("a step that fails is shown with its output and its line", async () => {
  writeDirectory({ Dockerfile: `FROM ${image}\nRUN true\n\nRUN echo some output; \\\n  exit 3\n` });
  const { exitCode, stderr } = await templates("build", "fails", dir);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^✗ 4\/6 RUN echo some output; exit 3 /m);
  expect(stderr).toMatch(/^ {4}some output$/m);
  expect(stderr).toMatch(/skerry: the build failed at line 4 of .*Dockerfile: failed to run command .*: exit status 3$/m);
});

test("what cannot be built is reported before anything is requested", async () => {
  writeDirectory({ Dockerfile: `FROM ${image}\nRUN --mount=type=cache,target=/x true\nCOPY --from=other /a /b\n` });
  const problems = await templates("build", "never", dir);
  expect(problems.exitCode).toBe(2);
  expect(problems.stderr).toMatch(/has 2 problems; nothing was built\n {2}line 2: RUN --mount is not supported.*\n {2}line 3: COPY --from/);

  writeDirectory({ Dockerfile: `FROM ${image}\nCOPY missing /\n` });
  expect((await templates("build", "never", dir)).stderr).toMatch(/line 2: no file of .* matches "missing"/);
  const odd = await templates("build", "web", "--cpu-count", "3", "-f", join(dir, "none"));
  expect(odd).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("there is no") });
  const listed = await templates("--json");
  expect(listed.stderr).toBe("");
  expect(JSON.parse(listed.stdout)).not.toContainEqual(expect.objectContaining({ aliases: ["never"] }));
});

test("Ctrl-C leaves a build that has started to the platform, and the next one takes its place", async () => {
  writeDirectory({ Dockerfile: `FROM ${image}\nRUN echo it runs; sleep 1000\n` });
  const command = new SkerryCommand(platform.dataDir).spawn(["templates", "build", "web:v1", dir, "--verbose"], { stderr: "pipe" });
  let stderr = "";
  const ended = new Promise<number | null>((resolve) => command.once("close", resolve));
  command.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (!stderr.includes("it runs") && (stderr + text).includes("    it runs\n")) command.kill("SIGINT");
    stderr += text;
  });
  expect(await ended, stderr).toBe(130);
  expect(stderr).toContain("interrupted: the build goes on without you");
  writeDirectory({ Dockerfile: `FROM ${image}\n` });
  expect((await templates("build", "web:v1", dir)).exitCode).toBe(0);
});

test("templates are listed and deleted", async () => {
  const { stdout, stderr } = await templates();
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^NAME +TAGS +STATE/);
  expect(stdout).toMatch(/^web +v1 +/m);
  expect((await templates("delete", "web")).exitCode).toBe(0);
  expect((await templates()).stdout).not.toMatch(/^web /m);
  expect(await templates("delete", "web")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("not found") });
});
