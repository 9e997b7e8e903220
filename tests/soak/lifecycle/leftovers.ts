import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Platform, readHostTraces } from "@skerry/testkit";
import { foldersIn } from "@skerry/testkit/leftovers";

/** What a stopped platform without sandboxes left on its host and in its database, except images of templates. */
export async function leftoversOf(platform: Platform): Promise<string[]> {
  const node = join(platform.dataDir, "node");
  const below = (folder: string) => readdirSync(join(node, folder)).map((name) => `${folder}/${name}`);
  const images = readdirSync(join(node, "images"));
  const templateAreas = new Set(
    images.flatMap((name) => {
      const { kind, local } = JSON.parse(readFileSync(join(node, "images", name, "image.json"), "utf8")) as {
        kind: string;
        local: { frozenAreas: string[] };
      };
      return kind === "template" ? local.frozenAreas : [];
    }),
  );
  const traces = await readHostTraces(platform.dataDir);
  return [
    ...below("sandboxes"),
    ...below("trash"),
    ...images.filter((name) => !name.startsWith("t")).map((name) => `images/${name}`),
    ...readdirSync(join(node, "areas"))
      .filter((name) => !templateAreas.has(name))
      .map((name) => `areas/${name}`),
    ...traces.processes.map((line) => `process ${line}`),
    ...traces.mounts.filter((path) => /\/(sandboxes|trash)\//.test(path)).map((path) => `mount ${path}`),
    ...traces.cgroups.flatMap((path) => foldersIn(path).map((name) => `cgroup ${join(path, name)}`)),
    ...rows(platform),
  ];
}

function rows(platform: Platform): string[] {
  const database = new DatabaseSync(join(platform.dataDir, "skerry.db"), { readOnly: true });
  try {
    const sandboxes = database.prepare("select id, state from sandboxes where state <> 'ended'").all();
    const images = database.prepare("select id, state from images").all();
    return [...sandboxes.map((row) => `sandbox ${row.id} ${row.state}`), ...images.map((row) => `image ${row.id} ${row.state}`)];
  } finally {
    database.close();
  }
}

/** Resident memory of the platform's processes, in bytes. */
export function residentBytes(platform: Platform): number {
  return platform
    .pids()
    .map((pid) => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024)
    .reduce((sum, bytes) => sum + bytes, 0);
}
