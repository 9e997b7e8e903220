// Large bodies, sent and received by curl.

import { closeSync, ftruncateSync, openSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";

export interface BodyOptions {
  readonly url: string;
  readonly host: string;
  readonly megabytes: number;
}

/** Milliseconds that a download takes. */
export function download({ url, host, megabytes }: BodyOptions): Promise<number> {
  return curl(["-H", `Host: ${host}`, `${url}${megabytes}`], megabytes);
}

/** Milliseconds that an upload takes. `dir` gets the file that is sent. */
export function upload({ url, host, megabytes }: BodyOptions, dir: string): Promise<number> {
  const file = join(dir, "body");
  const descriptor = openSync(file, "w");
  ftruncateSync(descriptor, megabytes * 1e6);
  closeSync(descriptor);
  // Without Expect, so that no answer is waited for before the body.
  return curl(["-H", `Host: ${host}`, "-H", "Expect:", "-T", file, url], megabytes);
}

async function curl(args: readonly string[], megabytes: number): Promise<number> {
  const format = "%{http_code} %{size_download} %{size_upload} %{time_total}";
  const fixed = ["--silent", "--show-error", "--insecure", "--http1.1", "--output", "/dev/null", "--write-out", format];
  const { stdout } = await runCommand("curl", [...fixed, ...args], { timeoutMs: 600_000 });
  const [status, received, sent, seconds] = stdout.split(" ").map(Number);
  if (status !== 200 || Math.max(Number(received), Number(sent)) !== megabytes * 1e6) throw new Error(`curl: ${stdout}`);
  return Number(seconds) * 1000;
}
