// The test files, how long each takes, and how they are divided into parts.

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type TestDepth = "sample" | "full";

/** Last measured seconds by file. Files that take less than `SHORTEST_S` are not listed. */
type Durations = Readonly<Record<TestDepth, Readonly<Record<string, number>>>>;

export interface Part {
  /** Starts at 1. */
  readonly number: number;
  readonly of: number;
}

const DURATIONS_FILE = "tests/run/durations.json";
const SHORTEST_S = 3;
/** Assumed seconds of a file that is not listed. A new end-to-end test must not start last, or the run would wait for it alone. */
const ASSUMED_S: readonly (readonly [RegExp, number])[] = [
  [/^tests\/(e2e|fault|security)\//, 20],
  [/^packages\/[^/]+\/test\//, 2],
];

/** Every test file of the repository, by the patterns in tests/run/projects.json. */
export function listTestFiles(repoRoot: string): string[] {
  const projects = JSON.parse(readFileSync(join(repoRoot, "tests/run/projects.json"), "utf8")) as Record<string, string[]>;
  return globSync(Object.values(projects).flat(), { cwd: repoRoot, exclude: ["**/node_modules/**"] }).sort();
}

/** Known durations at this depth. A file that was only measured in samples takes at least as long in full. */
export function readDurations(repoRoot: string, depth: TestDepth): Readonly<Record<string, number>> {
  const { sample, full } = readFile(repoRoot);
  return depth === "full" ? { ...sample, ...full } : sample;
}

const readFile = (repoRoot: string) => JSON.parse(readFileSync(join(repoRoot, DURATIONS_FILE), "utf8")) as Durations;

/** Replaces the durations of the measured files, for this depth. */
export function saveDurations(repoRoot: string, depth: TestDepth, measured: ReadonlyMap<string, number>): void {
  const durations = readFile(repoRoot);
  const merged = new Map([
    ...Object.entries(durations[depth]),
    ...[...measured].map(([file, seconds]) => [file, Math.round(seconds)] as const),
  ]);
  const lasting = [...merged].filter(([, seconds]) => seconds >= SHORTEST_S).sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(
    join(repoRoot, DURATIONS_FILE),
    `${JSON.stringify({ ...durations, [depth]: Object.fromEntries(lasting) }, undefined, 2)}\n`,
  );
}

/** Sorts the longest files first: a long file that started last would run alone at the end. */
export function slowestFirst(files: readonly string[], durations: Readonly<Record<string, number>>): string[] {
  return files.toSorted((a, b) => secondsOf(b, durations) - secondsOf(a, durations) || (a < b ? -1 : 1));
}

/** The files of one part. The parts take about equally long, and each file is in exactly one of them. */
export function filesOfPart(files: readonly string[], durations: Readonly<Record<string, number>>, part: Part): string[] {
  const parts = Array.from({ length: part.of }, () => ({ seconds: 0, files: [] as string[] }));
  for (const file of slowestFirst(files, durations)) {
    const shortest = parts.reduce((least, one) => (one.seconds < least.seconds ? one : least));
    shortest.seconds += secondsOf(file, durations);
    shortest.files.push(file);
  }
  return parts[part.number - 1]?.files ?? [];
}

function secondsOf(file: string, durations: Readonly<Record<string, number>>): number {
  return durations[file] ?? ASSUMED_S.find(([pattern]) => pattern.test(file))?.[1] ?? 0;
}
