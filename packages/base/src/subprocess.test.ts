import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCommand, SubprocessError } from "./subprocess.ts";

const folder = mkdtempSync(join(tmpdir(), "skerry-subprocess-"));
afterAll(() => rmSync(folder, { recursive: true }));

const shell = (script: string, options: Parameters<typeof runCommand>[2] = {}) => runCommand("/bin/sh", ["-c", script], options);
const failureOf = (running: Promise<unknown>) =>
  running.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error as SubprocessError,
  );

it("collects both outputs, and finds programs in the PATH of the child", async () => {
  expect(await shell("printf out; printf err >&2")).toEqual({ stdout: "out", stderr: "err" });
  expect((await runCommand("echo", ["a b", "", "ü"])).stdout).toBe("a b  ü\n");
});

it("gives a program the requested environment and folder, a new session and empty input", async () => {
  const { stdout } = await shell('env -0 | sort -z | tr "\\0" " "; pwd; ps -o sid= -p $$; echo $$; cat', {
    env: { PATH: "/usr/bin:/bin", A: "b" },
    cwd: folder,
  });
  const [first = "", sid, pid, ...rest] = stdout.split("\n");
  expect(first.replace(/(OLDPWD|PWD|_|SHLVL)=\S* /g, "")).toBe(`A=b PATH=/usr/bin:/bin ${folder}`);
  expect(sid?.trim()).toBe(pid);
  expect(rest).toEqual([""]);
});

it("passes the requested input and descriptors, and no others", async () => {
  const file = join(folder, "handed");
  writeFileSync(file, "handed on");
  const fd = openSync(file, "r");
  try {
    expect((await shell("cat; cat <&3", { input: "x".repeat(200_000), extraFds: [fd] })).stdout).toBe(`${"x".repeat(200_000)}handed on`);
    expect((await shell("ls -l /proc/self/fd")).stdout).not.toContain(file);
  } finally {
    closeSync(fd);
  }
  expect((await runCommand("true", [], { input: "nobody reads this".repeat(100_000) })).stdout).toBe("");
});

it("starts programs with no signal blocked or ignored", async () => {
  const { stdout } = await shell("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  expect(stdout).toBe("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
});

it("logs no more than the end of the output of a program", async () => {
  const failure = await failureOf(shell("i=0; while [ $((i += 1)) -le 20000 ]; do echo line-$i >&2; done; exit 1"));
  expect(failure.stderr.length).toBeGreaterThan(100_000);
  const fields: string[] = [];
  // The log serialises an error in the same way.
  for (const name in failure) fields.push(String(failure[name as keyof SubprocessError]));
  expect([failure.message, failure.stack, ...fields].join("").length).toBeLessThan(10_000);
  expect(failure.message).toContain("line-20000");
});

it("reports how a program failed", async () => {
  expect(await failureOf(shell("echo why >&2; exit 7"))).toMatchObject({ exitCode: 7, signalName: null, stderr: "why\n", timedOut: false });
  expect(await failureOf(shell("kill -TERM $$"))).toMatchObject({ exitCode: null, signalName: "SIGTERM" });
  const missing = await failureOf(runCommand("no-such-program", []));
  expect(missing).toBeInstanceOf(SubprocessError);
  expect(missing).toMatchObject({ exitCode: null, cause: { code: "ENOENT" } });
  expect(missing.message).toContain("no-such-program");
  expect(await failureOf(runCommand("/etc/passwd", []))).toMatchObject({ cause: { code: "EACCES" } });
  expect(await failureOf(shell("true", { cwd: "/no/such/folder" }))).toMatchObject({ cause: { code: "ENOENT" } });
  expect(await failureOf(runCommand("echo", ["a\0b"]))).toMatchObject({ cause: { code: "EINVAL" } });
});

it("kills all processes of a program at its time limit, and when the caller aborts", async () => {
  const startedAt = performance.now();
  expect(await failureOf(shell("sleep 60 & sleep 60; wait", { timeoutMs: 200 }))).toMatchObject({ signalName: "SIGKILL", timedOut: true });
  expect(await failureOf(shell("sleep 60", { signal: AbortSignal.timeout(100) }))).toMatchObject({
    signalName: "SIGKILL",
    timedOut: false,
  });
  expect(await failureOf(shell("sleep 60", { signal: AbortSignal.abort() }))).toMatchObject({ signalName: "SIGKILL" });
  expect(performance.now() - startedAt).toBeLessThan(50_000);
});

it("keeps the end of stderr, and fails when stdout exceeds its limit", async () => {
  expect(await failureOf(shell("head -c 5000000 /dev/zero", { maxOutputBytes: 1_000_000 }))).toMatchObject({ exitCode: 0 });
  const { stderr } = await failureOf(shell("yes x | head -n 1000000 >&2; echo last >&2; exit 1", { maxOutputBytes: 1_000 }));
  expect(stderr.endsWith("last\n")).toBe(true);
});

it("waits until the processes that a program started have closed its output, unless the output goes to a descriptor", async () => {
  expect((await shell("(sleep 0.3; echo late) & echo early")).stdout).toBe("early\nlate\n");
  const file = join(folder, "output");
  const fd = openSync(file, "w");
  try {
    await shell("sleep 1000 & echo $!", { outputFd: fd });
    const stillRuns = Number(readFileSync(file, "utf8"));
    expect(process.kill(stillRuns, "SIGKILL")).toBe(true);
  } finally {
    closeSync(fd);
  }
});

it("runs many programs at once, and leaves neither descriptors nor zombies", async () => {
  const count = () => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
  const before = count();
  const outcomes = await Promise.all(Array.from({ length: 100 }, (_, index) => shell(`echo ${index}`)));
  expect(outcomes.map(({ stdout }) => Number(stdout))).toEqual(Array.from({ length: 100 }, (_, index) => index));
  await expect.poll(count).toBe(before);
  const { stdout } = await runCommand("ps", ["-o", "stat=", "--ppid", String(process.pid)]);
  expect(stdout.split("\n").filter((line) => line.startsWith("Z"))).toEqual([]);
});
