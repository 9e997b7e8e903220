// The templates that ship, built as an operator builds them, and used through the official clients.

import { join } from "node:path";
import { Sandbox as Interpreter } from "@e2b/code-interpreter";
import { Sandbox as Desktop } from "@e2b/desktop";
import { runCommand } from "@skerry/base";
import { prepareInterpreterPython } from "@skerry/testkit";
import { sampleOrNone } from "@skerry/testkit/depth";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { Template } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";
import { BUILD_MS, HOST_ENV, type ShippedPlatform, startShippedPlatform } from "./shipped-platform.ts";

it("are not there before they are built", async () => {
  await using platform = await sharedPlatform("gvisor");
  expect(await Template.exists("code-interpreter-v1", clientOf(platform))).toBe(false);
});

const RUNTIMES = sampleOrNone("runtimes of the templates that ship", ["gvisor", "runc"] as const, () => false);
describe.each(RUNTIMES)("code-interpreter-v1 on %s", (runtime) => {
  let shipped: ShippedPlatform;
  let client: ReturnType<typeof clientOf>;
  beforeAll(async () => {
    shipped = await startShippedPlatform(runtime, "code-interpreter-v1");
    client = clientOf(shipped.platform);
  }, BUILD_MS);
  afterAll(async () => await shipped?.[Symbol.asyncDispose]());

  it("runs programs of the client from npm", async () => {
    const sandbox = await Interpreter.create({ ...client, envs: { GIVEN: "at creation" } });
    try {
      expect((await sandbox.runCode("1 + 1")).text).toBe("2");
      expect((await sandbox.runCode("import os; os.environ['GIVEN']")).text).toBe("at creation");
      expect((await sandbox.runCode("process.env.GIVEN", { language: "js" })).text).toBe("at creation");
      expect((await sandbox.runCode("id -un; pwd", { language: "bash" })).logs.stdout.join("")).toBe("root\n/home/user\n");
      const plot = await sandbox.runCode("import matplotlib.pyplot as plt; plt.plot([1, 2], [3, 4]); plt.show()");
      expect(plot.results[0]?.png).toMatch(/^iVBOR/);
      expect(plot.results[0]?.chart).toMatchObject({ type: "line" });
      const imports = "import numpy, pandas, scipy, sklearn, PIL, requests; numpy.arange(3).sum()";
      expect((await sandbox.runCode(imports)).error).toBeUndefined();
      await expect(sandbox.runCode("kept = 1; import time; time.sleep(300)", { timeoutMs: 3_000 })).rejects.toThrow();
      expect((await sandbox.runCode("kept")).text).toBe("1");
    } finally {
      await sandbox.kill();
    }
  });

  it("goes on after a pause, on gVisor with the variables of its contexts", async () => {
    const sandbox = await Interpreter.create(client);
    try {
      await sandbox.runCode("kept = 1");
      await sandbox.pause();
      await sandbox.connect();
      const { text, error } = await sandbox.runCode("kept");
      expect(text ?? error?.name).toBe(runtime === "gvisor" ? "1" : "NameError");
    } finally {
      await sandbox.kill();
    }
  });

  it("runs programs of the client from PyPI", async () => {
    const python = await prepareInterpreterPython();
    const { stdout } = await runCommand(python, [join(import.meta.dirname, "interpreter.py")], {
      env: { ...HOST_ENV, ...shipped.platform.env },
      timeoutMs: 300_000,
    });
    expect(stdout).toBe("all well\n");
  });

  it("starts its server and its kernels again when they are killed", async () => {
    const sandbox = await Interpreter.create(client);
    try {
      await sandbox.commands.run("pkill -KILL -f 'python -m interpreter'", { user: "root" });
      await expect.poll(() => sandbox.runCode("1 + 1").then(({ text }) => text, String), { timeout: 60_000 }).toBe("2");
    } finally {
      await sandbox.kill();
    }
  });
});

describe.each(RUNTIMES)("desktop on %s", (runtime) => {
  let shipped: ShippedPlatform;
  let desktop: Desktop;
  beforeAll(async () => {
    shipped = await startShippedPlatform(runtime, "desktop");
    desktop = await Desktop.create({ ...clientOf(shipped.platform), resolution: [1024, 768] });
  }, BUILD_MS);
  afterAll(async () => {
    await desktop?.kill();
    await shipped?.[Symbol.asyncDispose]();
  });

  it("moves the mouse, types into a window, and shows it", async () => {
    expect(await desktop.getScreenSize()).toEqual({ width: 1024, height: 768 });
    await desktop.moveMouse(300, 200);
    expect(await desktop.getCursorPosition()).toEqual({ x: 300, y: 200 });
    await desktop.commands.run("mousepad /home/user/typed.txt", { background: true });
    await expect.poll(() => desktop.getApplicationWindows("mousepad").catch(() => []), { timeout: 60_000 }).not.toEqual([]);
    const title = async () => await desktop.getWindowTitle(await desktop.getCurrentWindowId()).catch(() => "");
    await expect.poll(title, { timeout: 60_000 }).toContain("typed.txt");
    const before = Buffer.from(await desktop.screenshot());
    await desktop.write("typed by the client");
    await desktop.press(["ctrl", "s"]);
    const read = async () => await desktop.files.read("/home/user/typed.txt").catch(() => "");
    await expect.poll(read, { timeout: 60_000 }).toContain("typed by the client");
    const after = Buffer.from(await desktop.screenshot());
    expect([after.readUInt32BE(16), after.readUInt32BE(20)]).toEqual([1024, 768]);
    expect(after.equals(before)).toBe(false);
  });

  it("streams the display to a browser", async () => {
    await desktop.stream.start();
    try {
      const { stdout } = await desktop.commands.run("curl -fs http://localhost:6080/vnc.html");
      expect(stdout).toContain("noVNC");
    } finally {
      await desktop.stream.stop();
    }
  });

  it("has a browser", async () => {
    const page = "data:text/html,<title>shown</title><h1>shown";
    const { stdout } = await desktop.commands.run(`timeout 60 chromium --headless --disable-gpu --dump-dom '${page}'`);
    expect(stdout).toContain("<h1>shown</h1>");
  });
});
