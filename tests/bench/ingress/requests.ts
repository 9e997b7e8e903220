// Requests per second and latency, from wrk of Debian's package: one thread, connections that stay open, the same for every contender.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";

const CONNECTIONS = 32;
const SECONDS = 5;

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  readonly p99Ms: number;
}

export interface LoadOptions {
  /** Where the package was unpacked. */
  readonly root: string;
  readonly url: string;
  readonly host: string;
}

/** What wrk measured, in microseconds, as one line of JSON after its own report. */
const REPORT = `done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests":%d,"duration":%d,"p99":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
`;

/** Throws if a request failed. */
export async function measureRequests({ root, url, host }: LoadOptions): Promise<Load> {
  const script = join(root, "report.lua");
  writeFileSync(script, REPORT);
  const env = { PATH: "/usr/bin:/bin", LD_LIBRARY_PATH: join(root, "usr/lib/x86_64-linux-gnu") };
  const args = ["-t", "1", "-c", String(CONNECTIONS), "-d", `${SECONDS}s`, "--timeout", "30s", "-H", `Host: ${host}`, "-s", script, url];
  const { stdout } = await runCommand(join(root, "usr/bin/wrk"), args, { env });
  const { requests, duration, p99, errors } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<string, number>;
  if (errors !== 0) throw new Error(`${errors} requests to ${url} failed:\n${stdout}`);
  return { requests: Number(requests), perSecond: Number(requests) / (Number(duration) / 1e6), p99Ms: Number(p99) / 1000 };
}
