// The official client with the agent alone. The test constructs it as its own `connect` does after it has asked the platform.

import { AGENT_VERSION } from "@skerry/wire";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentOfFile } from "./agent-under-test.ts";

const TOKEN = "token-of-the-sandbox";
const agent = await agentOfFile();
let sandbox: Sandbox;

beforeAll(async () => {
  await agent.init({ accessToken: TOKEN, envVars: { FROM_INIT: "yes" } });
  sandbox = new Sandbox({
    sandboxId: "isdktest0000000000000",
    envdVersion: AGENT_VERSION,
    envdAccessToken: TOKEN,
    sandboxUrl: agent.url,
    apiKey: `e2b_${"0".repeat(40)}`,
  });
});
afterAll(async () => {
  await sandbox.commands.run("rm -rf /tmp/skerry-sdk");
});

describe("the official SDK", () => {
  it("runs commands", async () => {
    const result = await sandbox.commands.run("echo $FROM_INIT $X; echo oops >&2", { envs: { X: "x" } });
    expect(result).toMatchObject({ stdout: "yes x\n", stderr: "oops\n", exitCode: 0 });
    await expect(sandbox.commands.run("exit 7")).rejects.toMatchObject({ exitCode: 7 });
  });

  it("ends a command at its timeout with a timeout error", async () => {
    await expect(sandbox.commands.run("sleep 20", { timeoutMs: 500 })).rejects.toThrow(/timeout|deadline/i);
  });

  it("writes to, lists and kills background commands", async () => {
    const cat = await sandbox.commands.run("cat", { background: true, stdin: true });
    await sandbox.commands.sendStdin(cat.pid, "hello");
    await sandbox.commands.closeStdin(cat.pid);
    expect((await cat.wait()).stdout).toBe("hello");
    const sleeper = await sandbox.commands.run("sleep 60", { background: true, timeoutMs: 0 });
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).toContain(sleeper.pid);
    expect(await sandbox.commands.kill(sleeper.pid)).toBe(true);
    expect(await sandbox.commands.kill(999_999)).toBe(false);
  });

  it("writes, reads, lists and removes files", async () => {
    const info = await sandbox.files.write("/tmp/skerry-sdk/dir/文.txt", "content");
    expect(info).toMatchObject({ name: "文.txt", path: "/tmp/skerry-sdk/dir/文.txt" });
    expect(await sandbox.files.read("/tmp/skerry-sdk/dir/文.txt")).toBe("content");
    await sandbox.files.write([
      { path: "/tmp/skerry-sdk/1", data: "one" },
      { path: "/tmp/skerry-sdk/2", data: new Blob(["two"]) },
    ]);
    expect((await sandbox.files.list("/tmp/skerry-sdk")).map(({ name }) => name)).toEqual(["1", "2", "dir"]);
    expect(await sandbox.files.makeDir("/tmp/skerry-sdk/dir")).toBe(false);
    expect(await sandbox.files.exists("/tmp/skerry-sdk/3")).toBe(false);
    await sandbox.files.rename("/tmp/skerry-sdk/1", "/tmp/skerry-sdk/3");
    expect(Buffer.from(await sandbox.files.read("/tmp/skerry-sdk/3", { format: "bytes" })).toString()).toBe("one");
    await sandbox.files.remove("/tmp/skerry-sdk/3");
    await expect(sandbox.files.read("/tmp/skerry-sdk/3")).rejects.toThrow("does not exist");
  });

  it("opens terminals", async () => {
    let output = "";
    const terminal = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      onData: (data) => {
        output += Buffer.from(data).toString();
      },
    });
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 24 });
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode("tput cols\nexit\n"));
    expect((await terminal.wait()).exitCode).toBe(0);
    expect(output).toMatch(/^100\r?$/m);
  });

  it("makes URLs with which others can read and write one file", async () => {
    const upload = await sandbox.uploadUrl("/tmp/skerry-sdk/signed", { user: "root", useSignatureExpiration: 60 });
    const form = new FormData();
    form.append("file", "by a browser");
    expect(await (await fetch(upload, { method: "POST", body: form })).json()).toEqual([
      { name: "signed", path: "/tmp/skerry-sdk/signed", type: "file" },
    ]);
    const download = await sandbox.downloadUrl("/tmp/skerry-sdk/signed", { user: "root", useSignatureExpiration: 60 });
    expect(await (await fetch(download)).text()).toBe("by a browser");
    const late = await sandbox.downloadUrl("/tmp/skerry-sdk/signed", { user: "root", useSignatureExpiration: -60 });
    expect(await (await fetch(late)).json()).toEqual({ code: 401, message: "signature is already expired" });
  });

  it("gets an error when its token is wrong", async () => {
    const stranger = new Sandbox({
      sandboxId: "i",
      envdVersion: AGENT_VERSION,
      envdAccessToken: "no",
      sandboxUrl: agent.url,
      apiKey: `e2b_${"0".repeat(40)}`,
    });
    await expect(stranger.commands.run("true")).rejects.toThrow("[unauthenticated]");
  });
});
