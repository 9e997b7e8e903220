// The server of the template `code-interpreter-v1` with real kernels on the host, used through the official client.

import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { Sandbox } from "@e2b/code-interpreter";
import { spawnCommand } from "@skerry/base";
import { prepareInterpreterPython } from "@skerry/testkit";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TEMPLATE = join(import.meta.dirname, "../../templates/code-interpreter-v1");
const PATIENCE_MS = 60_000;
let server: ChildProcess;
let url: string;
let sandbox: Sandbox;

beforeAll(async () => {
  const python = await prepareInterpreterPython();
  const env = {
    PATH: `${dirname(python)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: "/tmp",
    LANG: "C.UTF-8",
    PYTHONPATH: join(TEMPLATE, "server"),
    PYTHONDONTWRITEBYTECODE: "1",
    ORIGINAL: "of the sandbox",
  };
  const args = ["-m", "interpreter", "--port", "0", "--address", "127.0.0.1", "--home", "/tmp", "--agent", "http://127.0.0.1:9"];
  server = spawnCommand(python, args, { env, stdout: "pipe", stderr: "pipe" });
  let printed = "";
  for (const output of [server.stdout, server.stderr]) output?.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await waitUntil("the server listens", () => printed.includes("listening on port") || server.exitCode !== null, 2 * PATIENCE_MS);
  expect(server.exitCode, printed).toBe(null);
  url = `http://127.0.0.1:${/listening on port (\d+)/.exec(printed)?.[1]}`;
  sandbox = new Sandbox({ sandboxId: "none", envdVersion: "0.6.13", sandboxUrl: url, apiKey: `e2b_${"0".repeat(40)}` });
});

afterAll(async () => {
  if (server === undefined || server.exitCode !== null) return;
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await ended;
});

/** A statement that needs no import. */
const kill = "__import__('os').kill(__import__('os').getpid(), 9)";

/** Starts an execution, reads its output until it contains a text, and then reads no more. */
function startUnread(body: object, until = ""): Promise<{ destroy(): void }> {
  return new Promise((resolve, reject) => {
    const call = request(`${url}/execute`, { method: "POST", agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("error", () => undefined);
      const read = (piece: string) => {
        text += piece;
        if (!text.includes(until)) return;
        response.off("data", read).pause();
        resolve(call);
      };
      response.on("data", read);
    });
    call.on("error", reject).end(JSON.stringify(body));
  });
}

/** The state of a process and its resident memory in MB, or undefined if it has ended. */
function stateOf(pid: number): { readonly state: string; readonly megabytes: number } | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, "m").exec(status)?.[1] ?? "";
    return { state: field("State"), megabytes: Number(field("VmRSS")) / 1024 };
  } catch {
    return undefined;
  }
}

const pidOf = async (options: object = {}) => Number((await sandbox.runCode("__import__('os').getpid()", options)).text);

describe("results", () => {
  it("has the value, the output and the count of an execution", async () => {
    const context = await sandbox.createCodeContext();
    const pieces: string[] = [];
    const run = await sandbox.runCode("import sys\nprint('héllo ☺')\nprint('bad', file=sys.stderr)\n'text'", {
      context,
      onStdout: ({ line }) => void pieces.push(line),
    });
    // The kernel sends its output in pieces of any size.
    expect(run).toMatchObject({ text: "text", executionCount: 1 });
    expect(run.logs.stdout.join("")).toBe("héllo ☺\n");
    expect(run.logs.stderr.join("")).toBe("bad\n");
    expect(pieces).toEqual(run.logs.stdout);
    const { error, executionCount } = await sandbox.runCode("def f():\n  return 1 / 0\nf()", { context });
    expect(error).toMatchObject({ name: "ZeroDivisionError", value: "division by zero" });
    expect(error?.traceback).toContain("return");
    expect(executionCount).toBe(2);
  });

  it("shows rich values in every form", async () => {
    const { results } = await sandbox.runCode(`from IPython.display import *
display(HTML('<b>x</b>'), Markdown('*x*'), Latex('$x$'), JSON({'a': [1]}), Javascript('1'))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg"/>'))
display({'application/x-own': 'mine'}, raw=True)
[1, {'a': None}]`);
    expect(results.map(({ html, markdown, latex, json, javascript }) => html ?? markdown ?? latex ?? json ?? javascript)).toEqual([
      "<b>x</b>",
      "*x*",
      "$x$",
      { a: [1] },
      "1",
      undefined,
      undefined,
      [1, { a: null }],
    ]);
    expect(results[5]?.svg).toContain("<svg");
    expect(results.map(({ isMainResult }) => isMainResult)).toEqual([...Array(7).fill(false), true]);
  });

  it("has pictures and data of plots, data frames and saved images", async () => {
    const { results, error } = await sandbox.runCode(`import matplotlib.pyplot as plt, pandas, PIL.Image, datetime
plt.plot([1, 2], [3, 4], label='rise'); plt.xlabel('time (s)'); plt.title('A line'); plt.show()
plt.bar(['a', 'b'], [3, 4]); plt.show()
plt.pie([1, 3], labels=['a', 'b']); plt.show()
plt.boxplot([[1, 2, 3, 4, 30]]); plt.show()
plt.scatter([datetime.datetime(2030, 1, 1), datetime.datetime(2030, 1, 2)], [3, 4]); plt.yscale('log'); plt.show()
f, (a, b) = plt.subplots(1, 2); a.plot([1]); b.bar([1, 2], [3, 4]); f.suptitle('Both'); plt.show()
PIL.Image.new('RGB', (2, 2)).save('/tmp/skerry-interpreter-test.png')
pandas.DataFrame({'n': [1, 2], 't': pandas.to_datetime(['2030-01-01', None])})`);
    expect(error).toBeUndefined();
    expect(results).toHaveLength(8);
    for (const { png } of results.slice(0, 7)) expect(png).toMatch(/^iVBOR/);
    const axes = { x_label: null, y_label: null, x_unit: null, y_unit: null };
    const scales = { x_label: "time (s)", x_unit: "s", x_scale: "linear" };
    const charts = results.slice(0, 6).map(({ chart }) => chart);
    expect(charts[0]).toMatchObject({ type: "line", title: "A line", ...scales, elements: [{ label: "rise", points: [[1, 3], [2, 4]] }] }); // biome-ignore format: as a table
    expect(charts[1]).toMatchObject({ type: "bar", ...axes, elements: [{ label: "a", value: 3 }, { label: "b", group: "" }] }); // biome-ignore format: as a table
    expect(charts[2]).toMatchObject({ type: "pie", elements: [{ label: "a", angle: 90, radius: 1 }, { label: "b", angle: 270 }] }); // biome-ignore format: as a table
    expect(charts[3]).toMatchObject({
      type: "box_and_whisker",
      elements: [{ min: 1, first_quartile: 2, median: 3, max: 4, outliers: [30] }],
    });
    expect(charts[4]).toMatchObject({ type: "scatter", x_scale: "datetime", y_scale: "log" });
    expect(JSON.stringify(charts[4]?.elements)).toContain("2030-01-01T00:00:00");
    expect(charts[5]).toMatchObject({ type: "superchart", title: "Both", elements: [{ type: "line" }, { type: "bar" }] });
    expect(results[7]?.data).toEqual({ n: [1, 2], t: ["2030-01-01T00:00:00", null] });
    expect(results[7]?.html).toContain("<table");
  });
});

describe("contexts", () => {
  it("are created, listed, restarted and removed", async () => {
    const context = await sandbox.createCodeContext({ cwd: "/usr" });
    const inContext = async (code: string) => await sandbox.runCode(code, { context });
    expect(context).toMatchObject({ language: "python", cwd: "/usr" });
    const listed = await sandbox.listCodeContexts();
    expect(listed.slice(0, 2).map(({ language }) => language)).toEqual(["python", "javascript"]);
    expect(listed.at(-1)).toEqual(context);
    expect((await inContext("x = 1\n__import__('os').getcwd()")).text).toBe("/usr");
    await sandbox.restartCodeContext(context);
    expect((await inContext("x")).error?.name).toBe("NameError");
    await sandbox.removeCodeContext(context);
    await expect(inContext("1")).rejects.toThrow(`Context ${context.id} not found`);
    expect(await sandbox.listCodeContexts()).not.toContainEqual(context);
  });

  it("set variables for one execution", async () => {
    const envs = { GIVEN: "it's\n$x", ORIGINAL: "changed" };
    for (const [language, read] of [
      ["python", (name: string) => `__import__('os').environ.get('${name}', '')`],
      ["js", (name: string) => `process.env.${name} ?? ''`],
      ["bash", (name: string) => `printf %s "$${name}"`],
    ] as const) {
      const value = async (name: string, options: object = {}) => {
        const { text, logs } = await sandbox.runCode(read(name), { language, ...options });
        return text ?? logs.stdout.join("").trim();
      };
      expect(await value("ORIGINAL", { envs }), language).toBe("changed");
      expect(await value("ORIGINAL"), language).toBe("of the sandbox");
      expect(await value("GIVEN"), language).toBe("");
    }
    const { text } = await sandbox.runCode("import os; os.environ['GIVEN']", { envs });
    expect(text).toContain("it's");
  });

  it("have a shared default for each language, also when the first calls come at the same time", async () => {
    const runs = await Promise.all([1, 2, 3].map((value) => sandbox.runCode(`globalThis.all = [...(globalThis.all ?? []), ${value}]; const n: number = all.length; n`, { language: "ts" }))); // biome-ignore format: one statement
    expect(runs.map(({ text }) => text).sort()).toEqual(["1", "2", "3"]);
    expect((await sandbox.listCodeContexts()).filter(({ language }) => language === "typescript")).toHaveLength(1);
    expect((await sandbox.runCode("throw new TypeError('no')", { language: "js" })).error).toMatchObject({
      name: "TypeError",
      value: "no",
    });
    await expect(sandbox.runCode("1", { language: "cobol" })).rejects.toThrow("500");
  });

  it("queue what two clients run", async () => {
    const context = await sandbox.createCodeContext();
    let hasStarted = false;
    const onStdout = () => {
      hasStarted = true;
    };
    const code = "import time; order = []; print('here', flush=True); time.sleep(0.5); order.append(1)";
    const slow = sandbox.runCode(code, { context, onStdout });
    await waitUntil("it runs", () => hasStarted, PATIENCE_MS);
    const fast = sandbox.runCode("order.append(2); order", { context });
    expect((await slow).executionCount).toBe(1);
    expect((await fast).results[0]?.json).toEqual([1, 2]);
  });
});

describe("faults", () => {
  it("interrupts what nobody waits for, and keeps the variables", async () => {
    const context = await sandbox.createCodeContext();
    await sandbox.runCode("kept = 1", { context });
    await expect(sandbox.runCode("import time; time.sleep(300)", { context, timeoutMs: 500 })).rejects.toThrow();
    expect((await sandbox.runCode("kept + 1", { context })).text).toBe("2");
  });

  it("restarts a kernel that takes no notice of interrupts, and says so", async () => {
    const context = await sandbox.createCodeContext();
    const code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(300)";
    (await startUnread({ context_id: context.id, code }, "deaf")).destroy();
    const { text, logs } = await sandbox.runCode("1 + 1", { context });
    expect(text).toBe("2");
    expect(logs.stderr.join("")).toContain("did not react to an interrupt");
  });

  it("starts a kernel that is killed again, and reports it", async () => {
    const context = await sandbox.createCodeContext();
    const { error } = await sandbox.runCode(`x = 1; ${kill}`, { context });
    expect(error).toMatchObject({ name: "UnexpectedEndOfExecution", value: expect.stringContaining("was killed by SIGKILL") });
    expect((await sandbox.runCode("'x' in globals()", { context })).text).toBe("False");
    const pid = await pidOf({ context });
    process.kill(pid, "SIGKILL");
    await waitUntil("the kernel has ended", () => stateOf(pid) === undefined, PATIENCE_MS);
    const { logs, text } = await sandbox.runCode("2", { context });
    expect(text).toBe("2");
    expect(logs.stderr.join("")).toContain("was killed by SIGKILL and was started again");
  });

  it("answers when a context is restarted or removed during an execution", async () => {
    const context = await sandbox.createCodeContext();
    const start = async () => {
      let hasStarted = false;
      const onStdout = () => {
        hasStarted = true;
      };
      const run = sandbox.runCode("print('here', flush=True); import time; time.sleep(300)", { context, onStdout });
      await waitUntil("it runs", () => hasStarted, PATIENCE_MS);
      return { run };
    };
    const first = await start();
    await sandbox.restartCodeContext(context);
    expect((await first.run).error?.name).toBe("ContextRestarting");
    const second = await start();
    // A request that the server had not read yet finds no context.
    const queued = sandbox.runCode("1", { context }).then(
      ({ error }) => error?.name,
      ({ name }: Error) => name,
    );
    await sandbox.removeCodeContext(context);
    expect((await second.run).error?.name).toBe("ExecutionAborted");
    expect(await queued).toMatch(/^(ExecutionAborted|NotFoundError)$/);
  });

  it("stops a kernel that prints more than its client reads", async () => {
    const context = await sandbox.createCodeContext();
    const pid = await pidOf({ context });
    const client = await startUnread({ context_id: context.id, code: "while True: print('x' * 100_000)" });
    await waitUntil("the kernel is stopped", () => stateOf(pid)?.state === "T", PATIENCE_MS);
    for (const one of [pid, server.pid ?? 0]) expect(stateOf(one)?.megabytes).toBeLessThan(500);
    client.destroy();
    expect((await sandbox.runCode("1 + 1", { context })).text).toBe("2");
  });

  it("leaves no kernel of a removed context", async () => {
    const context = await sandbox.createCodeContext();
    const pid = await pidOf({ context });
    await sandbox.removeCodeContext(context);
    expect(readdirSync("/proc")).not.toContain(String(pid));
  });
});
