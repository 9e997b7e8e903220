import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

describe.each(runtimesFor("terminals and git through the SDK", "runc"))("the npm SDK on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const keys = (text: string) => new TextEncoder().encode(text);

  /** A terminal's output so far, as lines without escape sequences for cursor and colours. */
  function screen(): { onData: (data: Uint8Array) => void; text: () => string } {
    let text = "";
    const decoder = new TextDecoder();
    return {
      onData: (data) => {
        text += decoder.decode(data, { stream: true });
      },
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences contain control characters
      text: () => text.replace(/\x1b\[[\d;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\r/g, ""),
    };
  }

  it("opens a terminal, resizes it, types at once, and gets its exit code", async () => {
    const { onData, text } = screen();
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData, envs: { COLOUR: "grey" }, timeoutMs: 0 });
    await sandbox.pty.sendInput(terminal.pid, keys("tput cols; tty; echo $TERM-$COLOUR-$LANG\n"));
    await expect.poll(text).toMatch(/\n80\n\/dev\/pts\/\d+\nxterm-256color-grey-C\.UTF-8\n/);
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 40 });
    await sandbox.pty.sendInput(terminal.pid, keys("tput cols; tput lines; exit 0\n"));
    expect(await terminal.wait()).toMatchObject({ exitCode: 0 });
    expect(text()).toMatch(/\n100\n40\n/);
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).not.toContain(terminal.pid);
  });

  it("disconnects from a terminal and reconnects to it", async () => {
    const first = screen();
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: first.onData, timeoutMs: 0 });
    await sandbox.pty.sendInput(terminal.pid, keys("KEPT=here\n"));
    await expect.poll(first.text).toMatch(/KEPT=here/);
    await terminal.disconnect();
    const second = screen();
    const again = await sandbox.pty.connect(terminal.pid, { onData: second.onData, timeoutMs: 0 });
    await sandbox.pty.sendInput(terminal.pid, keys('echo "still $KEPT"; exit 5\n'));
    await expect(again.wait()).rejects.toMatchObject({ exitCode: 5 });
    expect(second.text()).toMatch(/\nstill here\n/);
    expect(second.text()).not.toMatch(/KEPT=/);
  });

  it("kills a terminal, interrupts a program in another one, and learns of both", async () => {
    const { onData, text } = screen();
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData, timeoutMs: 0 });
    await sandbox.pty.sendInput(terminal.pid, keys("sleep 100 || echo interrupted\n"));
    await expect.poll(text).toMatch(/sleep 100/);
    await new Promise((resolve) => setTimeout(resolve, 500));
    await sandbox.pty.sendInput(terminal.pid, keys("\x03"));
    await sandbox.pty.sendInput(terminal.pid, keys("echo pro''mpt\n"));
    await expect.poll(text).toMatch(/\nprompt\n/);
    expect(await sandbox.pty.kill(terminal.pid)).toBe(true);
    await expect(terminal.wait()).rejects.toMatchObject({ exitCode: -1, error: "signal: killed" });
    expect(await sandbox.pty.kill(terminal.pid)).toBe(false);
  });

  it("writes to a command, follows it from another client, and kills it", async () => {
    const cat = await sandbox.commands.run("cat", { background: true, stdin: true, timeoutMs: 0 });
    await sandbox.commands.sendStdin(cat.pid, "first\n");
    const seen: string[] = [];
    const follower = await sandbox.commands.connect(cat.pid, { onStdout: (text) => void seen.push(text) });
    await sandbox.commands.sendStdin(cat.pid, "second\n");
    await sandbox.commands.closeStdin(cat.pid);
    expect((await cat.wait()).stdout).toBe("first\nsecond\n");
    expect(await follower.wait()).toMatchObject({ exitCode: 0 });
    expect(seen.join("")).toMatch(/second\n$/);
    expect(await sandbox.commands.kill(cat.pid)).toBe(false);
    await expect(sandbox.commands.connect(999_999)).rejects.toMatchObject({ name: "NotFoundError" });
    const reaped = await sandbox.commands.run("sleep 100", { background: true, timeoutMs: 0 });
    await sandbox.commands.kill(reaped.pid);
    await expect(sandbox.commands.run(`kill -0 ${reaped.pid}`)).rejects.toMatchObject({ exitCode: 1 });
  });

  it("preserves binary data, whole characters, and the order of each stream", async () => {
    const { stdout } = await sandbox.commands.run("python3 -c 'print(\"€\" * 100_000)'");
    expect(stdout).toBe(`${"€".repeat(100_000)}\n`);
    const lines = Array.from({ length: 5_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(await sandbox.commands.run("seq 5000 | tee /dev/stderr")).toMatchObject({ stdout: lines, stderr: lines });
  });

  it("works with git: commits, branches, and a remote that is pushed to and cloned", async () => {
    const { git } = sandbox;
    await git.configureUser("A Person", "person@example.org", { scope: "global" });
    await sandbox.commands.run("git init --bare -q -b main /home/user/remote.git");
    await git.init("/home/user/work", { initialBranch: "main" });
    await sandbox.files.write("/home/user/work/readme.md", "# one\n");
    expect((await git.status("/home/user/work")).fileStatus.map(({ name }) => name)).toEqual(["readme.md"]);
    await git.add("/home/user/work");
    await git.commit("/home/user/work", "a first commit");
    await git.createBranch("/home/user/work", "feature");
    expect(await git.branches("/home/user/work")).toMatchObject({ currentBranch: "feature" });
    await git.checkoutBranch("/home/user/work", "main");
    await git.remoteAdd("/home/user/work", "origin", "/home/user/remote.git");
    await git.push("/home/user/work", { remote: "origin", branch: "main", setUpstream: true });
    await git.clone("/home/user/remote.git", { path: "/home/user/clone" });
    expect(await sandbox.files.read("/home/user/clone/readme.md")).toBe("# one\n");
    expect((await sandbox.commands.run("git -C /home/user/clone log --format='%an: %s'")).stdout).toBe("A Person: a first commit\n");
  });
});
