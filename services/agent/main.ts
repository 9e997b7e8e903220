// The agent's entry point inside a sandbox: `node agent.js [--host H] [--port N]`. Secrets arrive with POST /init, never as arguments.

import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { startAgent } from "@skerry/agent/server";
import { AGENT_PORT } from "@skerry/wire";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// A sandbox lives as long as its agent, so an error in one request must not end all processes.
process.on("uncaughtException", (error) => process.stderr.write(`uncaught exception: ${error.stack ?? error.message}\n`));

const { values } = parseArgs({ options: { host: { type: "string" }, port: { type: "string" }, announce: { type: "boolean" } } });
const agent = startAgent({
  host: values.host ?? "0.0.0.0",
  port: values.port === undefined ? AGENT_PORT : Number(values.port),
  root: dirname(process.argv[1] ?? "/"),
  path: process.env.PATH || DEFAULT_PATH,
});
agent.then(
  // Tests let the kernel choose the port and read it from stdout.
  ({ port }) => values.announce && process.stdout.write(`${port}\n`),
  (error: unknown) => {
    process.stderr.write(`the agent could not start: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  },
);
