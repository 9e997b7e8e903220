import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

describe.each(runtimesFor("the SDK from npm"))("official npm SDK on %s", (runtime) => {
  let platform: SharedPlatform;
  let client: ReturnType<typeof clientOf>;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    client = clientOf(platform);
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  it("runs the program of the README", async () => {
    const sandbox = await Sandbox.create(client);
    await sandbox.files.write("hello.py", "print(sum(range(10)))");
    expect((await sandbox.commands.run("python3 hello.py")).stdout).toBe("45\n");
    expect(await sandbox.kill()).toBe(true);
    expect(await sandbox.isRunning()).toBe(false);
    expect(await Sandbox.kill(sandbox.sandboxId, client)).toBe(false);
  });

  it("gives the user, the tools and the passwordless sudo that templates promise", async () => {
    const sandbox = await Sandbox.create(client);
    const run = async (command: string) => (await sandbox.commands.run(command)).stdout.trim();
    expect(await run("id -un; id -u; pwd; sudo id -un")).toBe("user\n1000\n/home/user\nroot");
    expect(
      await run(
        "for tool in bash python3 node npm git curl sudo ps tput ss realpath findmnt; do command -v $tool >/dev/null || echo no $tool; done",
      ),
    ).toBe("");
    expect(await run("python3 -m venv /tmp/venv && /tmp/venv/bin/pip --version | cut -d' ' -f1")).toBe("pip");
    expect(await run("hostname")).toBe("sandbox");
    // The agent reads the groups again for each command.
    expect(await run("sudo groupadd builders && sudo usermod -aG builders user && id -Gn")).not.toContain("builders");
    expect((await run("id -Gn")).split(" ")).toEqual(expect.arrayContaining(["user", "builders"]));
    await sandbox.kill();
  });

  it("passes environment variables on, and those of one command only to this command", async () => {
    const sandbox = await Sandbox.create({ ...client, envs: { COLOUR: "grey", "WITH SPACE": "no harm" } });
    const echo = (envs?: Record<string, string>) => sandbox.commands.run("echo $COLOUR $SIZE", envs ? { envs } : {});
    expect((await echo({ SIZE: "small" })).stdout).toBe("grey small\n");
    expect((await echo()).stdout).toBe("grey\n");
    await sandbox.kill();
  });

  it("writes, reads, lists, moves and removes files", async () => {
    const sandbox = await Sandbox.create(client);
    const bytes = crypto.getRandomValues(new Uint8Array(65_536));
    await sandbox.files.write("deep/er/data.bin", bytes.buffer);
    expect(Buffer.from(await sandbox.files.read("deep/er/data.bin", { format: "bytes" }))).toEqual(Buffer.from(bytes));
    const [entry] = await sandbox.files.list("deep/er");
    expect(entry).toMatchObject({ name: "data.bin", type: "file", path: "/home/user/deep/er/data.bin", size: 65_536, owner: "user" });
    await sandbox.files.rename("deep/er/data.bin", "moved.bin");
    expect(await sandbox.files.exists("deep/er/data.bin")).toBe(false);
    expect((await sandbox.files.getInfo("moved.bin")).permissions).toBe("-rw-r--r--");
    await sandbox.files.remove("moved.bin");
    await expect(sandbox.files.read("moved.bin")).rejects.toThrow(/does not exist/);
    await sandbox.kill();
  });

  it("reports exit codes, standard error, timeouts and signals as the SDK expects them", async () => {
    const sandbox = await Sandbox.create(client);
    await expect(sandbox.commands.run("echo out; echo err >&2; exit 3")).rejects.toMatchObject({
      exitCode: 3,
      stdout: "out\n",
      stderr: "err\n",
    });
    await expect(sandbox.commands.run("sleep 20", { timeoutMs: 500 })).rejects.toMatchObject({ name: "TimeoutError" });
    const background = await sandbox.commands.run("sleep 100", { background: true });
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).toContain(background.pid);
    expect(await sandbox.commands.kill(background.pid)).toBe(true);
    await expect(background.wait()).rejects.toMatchObject({ error: "signal: killed" });
    await sandbox.kill();
  });

  it("reaches a server inside through the port's own host name", async () => {
    const sandbox = await Sandbox.create(client);
    await sandbox.commands.run("cd /tmp && echo through > page && python3 -m http.server 8000", { background: true, timeoutMs: 0 });
    const host = sandbox.getHost(8000);
    expect(host).toBe(`8000-${sandbox.sandboxId}.${platform.domain}`);
    // Names below localhost resolve to loopback, but not with every resolver. So this test puts the name into the header.
    const { request } = await import("node:http");
    const body = await new Promise<string>((resolve, reject) => {
      request(`${platform.edgeUrl}/page`, { headers: { Host: host } }, (response) => {
        response.setEncoding("utf8").on("data", resolve);
      })
        .on("error", reject)
        .end();
    });
    expect(body).toBe("through\n");
    await sandbox.kill();
  });

  it("connects to a running sandbox, extends its time and lists it", async () => {
    const sandbox = await Sandbox.create({ ...client, metadata: { "some key": "a&b=c% ü" }, timeoutMs: 600_000 });
    const again = await Sandbox.connect(sandbox.sandboxId, { ...client, timeoutMs: 1_200_000 });
    expect((await again.commands.run("echo again")).stdout).toBe("again\n");
    const info = await again.getInfo();
    expect(info.endAt.getTime() - Date.now()).toBeGreaterThan(700_000);
    const listed = await Sandbox.list({ ...client, query: { metadata: { "some key": "a&b=c% ü" } } }).nextItems();
    expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([sandbox.sandboxId]);
    await sandbox.setTimeout(1_000);
    await expect.poll(() => sandbox.isRunning()).toBe(false);
  });

  it("removes a sandbox after its timeout", async () => {
    const { sandboxID } = (await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 1 } })).body as {
      sandboxID: string;
    };
    await expect.poll(async () => (await callApi(platform, `/sandboxes/${sandboxID}`)).status).toBe(404);
    const askHealth = () => fetch(`${platform.edgeUrl}/health`, { headers: { "E2b-Sandbox-Id": sandboxID, "E2b-Sandbox-Port": "49983" } });
    await expect.poll(async () => (await askHealth()).status).toBe(502);
    const health = await askHealth();
    const gone = { sandboxId: sandboxID, message: "The sandbox was not found", code: 502, state: "ended", endReason: "timeout" };
    expect(await health.json()).toEqual({ ...gone, endedAt: expect.any(String) });
  });

  it("resets the connection of a running command when the sandbox is killed, instead of ending it cleanly", async () => {
    const sandbox = await Sandbox.create(client);
    const command = await sandbox.commands.run("sleep 100", { background: true, timeoutMs: 0 });
    const ended = expect(command.wait()).rejects.toMatchObject({
      name: "TimeoutError",
      message: expect.stringMatching(/killed|end of life/),
    });
    await sandbox.kill();
    await ended;
  });
});
