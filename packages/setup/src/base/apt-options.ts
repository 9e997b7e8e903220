import { runCommand } from "@skerry/base";
import { toolEnvironment } from "../tool-environment.ts";

/** The host's apt settings for reaching archives (proxies, date checks), as lines of an apt.conf. */
export async function aptTransportOptions(): Promise<string[]> {
  const { stdout } = await runCommand("apt-config", ["dump"], { env: toolEnvironment() });
  return stdout
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /^Acquire::(https?::|ftp::|Check-Valid-Until|Check-Date)/i.test(line) && !/ "";$/.test(line));
}
