import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PUBLIC_PROXY = "https://proxy.golang.org";

/** The proxies in Go's order: from the environment, the user's go/env, the installation's go.env, or the public default. */
export async function moduleProxies(env: Readonly<Record<string, string | undefined>> = process.env): Promise<string[]> {
  const files = [join(env.XDG_CONFIG_HOME ?? join(env.HOME ?? "/root", ".config"), "go/env"), "/usr/local/go/go.env", "/usr/lib/go/go.env"];
  let value = env.GOPROXY;
  for (const file of files) {
    value ||= await readSetting(file);
  }
  return parseModuleProxies(value || PUBLIC_PROXY);
}

/** The addresses in a GOPROXY value. `direct` and `off` are not addresses. */
export function parseModuleProxies(value: string): string[] {
  return value
    .split(/[,|]/)
    .map((part) => part.trim().replace(/\/+$/, ""))
    .filter((part) => /^https?:\/\//.test(part));
}

async function readSetting(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  return /^GOPROXY=(.*)$/m.exec(text)?.[1]?.trim();
}
