// Chromium and its page. Commands: serve | check | mark TEXT. `serve` keeps running and serves the page. The others query the browser.

import { randomFillSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const PAGE_PORT = 7001;
const DEBUGGING = "http://127.0.0.1:9222";

function serve(): void {
  const page = readFileSync(`${import.meta.dirname}/chromium.html`);
  createServer((request, response) => {
    if (request.url === "/ping") return void response.end("pong");
    response.setHeader("Content-Type", "text/html").end(page);
  }).listen(PAGE_PORT, "127.0.0.1");
}

/** Evaluates an expression in the page. */
async function evaluate(expression: string): Promise<unknown> {
  const targets = (await (await fetch(`${DEBUGGING}/json/list`)).json()) as { type: string; webSocketDebuggerUrl: string }[];
  const page = targets.find(({ type }) => type === "page");
  if (!page) throw new Error("the browser has no page");
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  const answered = Promise.withResolvers<string>();
  socket.onopen = () =>
    socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression, awaitPromise: true, returnByValue: true } }));
  socket.onmessage = (event) => answered.resolve(String(event.data));
  socket.onerror = () => answered.reject(new Error("the connection to the browser failed"));
  const { result } = JSON.parse(await answered.promise);
  socket.close();
  if (result?.exceptionDetails) throw new Error(result.exceptionDetails.exception?.description ?? result.exceptionDetails.text);
  return result?.result?.value;
}

/** Type, pid and start time of the browser's processes. A restore must not change them. */
function processes(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        if (!commandLine.includes("chromium-headless-shell")) return [];
        const type = /--type=([\w-]+)/.exec(commandLine)?.[1] ?? "browser";
        // Processes that the browser starts and ends on demand are not part of the state.
        if (type === "utility" && !/network|storage/.test(commandLine)) return [];
        const startedAt = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];
        return [`${type} ${pid} ${startedAt}`];
      } catch {
        return [];
      }
    })
    .sort();
}

async function check(): Promise<void> {
  const state = (await evaluate("window.isReady ? window.check() : Promise.reject(new Error('the page is not ready'))")) as Record<
    string,
    unknown
  >;
  const identity = `${state.identity} ${processes().join(", ")}`;
  // This Node.js process started a moment ago, so its random state is newer than the restore.
  const random = randomFillSync(Buffer.alloc(16)).toString("hex");
  process.stdout.write(JSON.stringify({ ...state, identity, random }));
}

const [command, text] = process.argv.slice(2);
if (command === "serve") serve();
if (command === "check") await check();
if (command === "mark") await evaluate(`window.mark = ${JSON.stringify(text)}`);
