// The templates that ship, built as an operator builds them, and used through the official clients.

import { join } from "node:path";
import { Sandbox as Interpreter } from "@e2b/code-interpreter";
import { Sandbox as Desktop } from "@e2b/desktop";
import { runCommand } from "@skerry/base";
import { prepareInterpreterPython } from "@skerry/testkit";
import { sampleOrNone } from "@skerry/testkit/depth";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { USER_ENV } from "@skerry/testkit/skerry-command";
import { Sandbox, Template } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";
import { BUILD_MS, type ShippedPlatform, startShippedPlatform } from "./shipped-platform.ts";

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

  it("runs programs of the client from PyPI", () => runsProgram("interpreter.py", shipped));

  it("runs R and Java", async () => {
    const sandbox = await Interpreter.create(client);
    try {
      const r = await sandbox.runCode("x <- c(1, 2, 6); print(mean(x)); plot(x)", { language: "r" });
      expect(r.error).toBeUndefined();
      expect(r.logs.stdout.join("")).toBe("[1] 3\n");
      expect(r.results.at(-1)?.png).toMatch(/^iVBOR/);
      expect((await sandbox.runCode("Sys.getenv('A')", { language: "r", envs: { A: "é" } })).results[0]?.text).toContain("é");
      expect((await sandbox.runCode("stop('no')", { language: "r" })).error?.value).toContain("no");
      const java = await sandbox.runCode("int a = 20; System.out.println(a); a + 1", { language: "java" });
      expect([java.text, java.logs.stdout.join("")]).toEqual(["21", "20\n"]);
      const thrown = await sandbox.runCode('throw new RuntimeException("no");', { language: "java" });
      expect(thrown.error?.name).toBe("RuntimeException");
    } finally {
      await sandbox.kill();
    }
  });

  it("loses only the kernel that uses too much memory", async () => {
    const sandbox = await Interpreter.create(client);
    try {
      await sandbox.runCode("let kept = 1", { language: "js" });
      const { error } = await sandbox.runCode("held = []\nwhile True: held.append(bytearray(50 << 20))", { timeoutMs: 120_000 });
      expect(error?.name).toBe("UnexpectedEndOfExecution");
      expect((await sandbox.runCode("1 + 1")).text).toBe("2");
      expect((await sandbox.runCode("kept", { language: "js" })).text).toBe("1");
    } finally {
      await sandbox.kill();
    }
  });

  it("forks a running notebook, of which each goes on alone", async () => {
    const source = await Interpreter.create(client);
    const made: Interpreter[] = [source];
    try {
      await source.runCode("value = 10");
      const { snapshotId } = await source.createSnapshot();
      const fork = await Interpreter.create(snapshotId, client);
      made.push(fork);
      const add = async (sandbox: Interpreter, more: number) => {
        const { text, error } = await sandbox.runCode(`value += ${more}; value`);
        return text ?? error?.name;
      };
      // On runc a fork has a server of its own, without the contexts.
      const isKept = runtime === "gvisor";
      expect([await add(fork, 1), await add(source, 5), await add(fork, 1)]).toEqual(
        isKept ? ["11", "15", "12"] : ["NameError", "15", "NameError"],
      );
    } finally {
      for (const sandbox of made) await sandbox.kill();
    }
  });

  it("ends a cell that runs during a pause with an error, and keeps what it has done", async () => {
    const sandbox = await Interpreter.create(client);
    try {
      const printed: string[] = [];
      const cell = sandbox.runCode("import time\nfor n in range(3000):\n    print(n, flush=True)\n    time.sleep(0.1)", {
        onStdout: ({ line }) => void printed.push(line),
      });
      cell.catch(() => {});
      await expect.poll(() => printed.length, { timeout: 60_000 }).toBeGreaterThan(2);
      await sandbox.pause();
      await expect(cell).rejects.toThrow();
      await sandbox.connect();
      const { text, error } = await sandbox.runCode("n");
      if (runtime === "gvisor") expect(Number(text)).toBeGreaterThanOrEqual(2);
      else expect(error?.name).toBe("NameError");
    } finally {
      await sandbox.kill();
    }
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
    // Without a limit, the client would end it after a minute.
    await desktop.commands.run("mousepad /home/user/typed.txt", { background: true, timeoutMs: 0 });
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

  it("runs programs of the client from PyPI", () => runsProgram("desktop.py", shipped));

  it("launches its browser, also after a crash", async () => {
    const windows = () => desktop.getApplicationWindows("chromium").catch(() => []);
    for (const name of ["chromium", "google-chrome"]) {
      await desktop.launch(name, "about:blank");
      await expect.poll(windows, { timeout: 60_000 }).not.toEqual([]);
      await desktop.commands.run("pkill -KILL -x chromium");
      await expect.poll(windows, { timeout: 60_000 }).toEqual([]);
    }
    const page = "data:text/html,<title>shown</title><h1>shown";
    const { stdout } = await desktop.commands.run(`timeout 60 chromium --headless --disable-gpu --dump-dom '${page}'`);
    expect(stdout).toContain("<h1>shown</h1>");
  });

  it("streams the display to a browser, on gVisor also after a pause in the middle", async () => {
    await desktop.stream.start();
    const { stdout } = await desktop.commands.run("curl -fs http://localhost:6080/vnc.html");
    expect(stdout).toContain("noVNC");
    const url = shipped.platform.edgeUrl.replace("http:", "ws:");
    const headers = { "E2b-Sandbox-Id": desktop.sandboxId, "E2b-Sandbox-Port": "6080" };
    const open = async () => {
      const socket = new WebSocket(`${url}/websockify`, { headers, protocols: ["binary"] } as never);
      socket.binaryType = "arraybuffer";
      const closed = new Promise<void>((resolve) => socket.addEventListener("close", () => resolve()));
      const greeting = await new Promise<string>((resolve, reject) => {
        socket.addEventListener("message", ({ data }) => resolve(Buffer.from(data as ArrayBuffer).toString()), { once: true });
        void closed.then(() => reject(new Error("the stream was closed before its first message")));
      });
      return { socket, closed, greeting };
    };
    const before = await open();
    expect(before.greeting).toMatch(/^RFB 003/);
    if (runtime === "runc") return before.socket.close();
    const windows = await desktop.getApplicationWindows("mousepad");
    await desktop.pause();
    await before.closed;
    await desktop.connect();
    const after = await open();
    expect(after.greeting).toMatch(/^RFB 003/);
    after.socket.close();
    expect(await desktop.getApplicationWindows("mousepad")).toEqual(windows);
    await desktop.stream.stop();
  });
});

describe.each(RUNTIMES)("mcp-gateway on %s", (runtime) => {
  let shipped: ShippedPlatform;
  let client: ReturnType<typeof clientOf>;
  beforeAll(async () => {
    shipped = await startShippedPlatform(runtime, "mcp-gateway");
    client = clientOf(shipped.platform);
  }, BUILD_MS);
  afterAll(async () => await shipped?.[Symbol.asyncDispose]());

  /** Sends a message to the gateway through the edge, as MCP clients do. */
  const send = async (sandbox: Sandbox, token: string, message: object, session = "") => {
    const response = await fetch(`${shipped.platform.edgeUrl}/mcp`, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
      headers: {
        "E2b-Sandbox-Id": sandbox.sandboxId,
        "E2b-Sandbox-Port": "50005",
        Authorization: `Bearer ${token}`,
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        ...(session === "" ? {} : { "Mcp-Session-Id": session }),
      },
    });
    return { status: response.status, session: response.headers.get("mcp-session-id") ?? session, text: await response.text() };
  };
  const clientInfo = { name: "test", version: "1" };
  const hello = { method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } };
  const now = { method: "tools/call", params: { name: "get_current_time", arguments: { timezone: "UTC" } } };

  it("serves the tools of the servers that the client names, to whoever has the token", async () => {
    const sandbox = await Sandbox.create({ ...client, mcp: { time: {}, filesystem: { paths: ["/home/user"] } } });
    try {
      expect(sandbox.getMcpUrl()).toMatch(/^https:\/\/50005-.*\/mcp$/);
      const token = await (await Sandbox.connect(sandbox.sandboxId, client)).getMcpToken();
      expect((await send(sandbox, "another", hello)).status).toBe(401);
      const begin = async () => (await send(sandbox, token ?? "", hello)).session;
      const tools = await send(sandbox, token ?? "", { method: "tools/list" }, await begin());
      for (const tool of ["get_current_time", "list_directory"]) expect(tools.text).toContain(`"name":"${tool}"`);
      expect((await send(sandbox, token ?? "", now, await begin())).text).toContain("UTC");
      await sandbox.commands.run("pkill -KILL -f mcp-server-time", { user: "root" });
      await expect.poll(async () => (await send(sandbox, token ?? "", now, await begin())).text, { timeout: 60_000 }).toContain("UTC");
      // On runc it is started again with what it served.
      await sandbox.pause();
      await sandbox.connect();
      // On runc the gateway starts again, which takes a moment.
      const answer = async () => (await send(sandbox, token ?? "", now, await begin())).text;
      await expect.poll(answer, { timeout: 60_000 }).toContain("UTC");
    } finally {
      await sandbox.kill();
    }
  });

  it("names the servers that it has when a client wants another, and options that a server lacks", async () => {
    await expect(Sandbox.create({ ...client, mcp: { nothing: {} } as never })).rejects.toThrow("It has brave, context7,");
    await expect(Sandbox.create({ ...client, mcp: { filesystem: {} } as never })).rejects.toThrow("'paths' must be a list of texts");
  });
});

/** Runs a program of an official client from PyPI. */
async function runsProgram(name: string, { platform }: ShippedPlatform): Promise<void> {
  const python = await prepareInterpreterPython();
  const env = { ...USER_ENV, ...platform.env };
  const { stdout } = await runCommand(python, [join(import.meta.dirname, name)], { env, timeoutMs: 300_000 });
  expect(stdout).toBe("all well\n");
}
