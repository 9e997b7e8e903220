// Which queued builds begin next. Teams take turns: the next build is the oldest one of the team that has the fewest builds running. Among
// equal teams it is the team that has waited longest since one of its builds began.

import type { BuildEntry } from "@skerry/store";

export interface Turn {
  readonly build: BuildEntry;
  readonly nodeId: string;
}

export interface TurnFacts {
  /** All builds that are queued or run, whichever process follows them, oldest first. */
  readonly builds: readonly BuildEntry[];
  /** Nodes that may be given builds now. */
  readonly nodeIds: readonly string[];
  /** When a build of a team last began. */
  readonly lastBegan: ReadonlyMap<string, number>;
  /** How many builds a node carries out at once. */
  readonly atOnce: number;
  /** The only node that can carry a build out, if there is one. */
  readonly nodeOf: (build: BuildEntry) => string | undefined;
}

/** The builds that begin now, each with its node. */
export function nextTurns({ builds, nodeIds, lastBegan, atOnce, nodeOf }: TurnFacts): readonly Turn[] {
  const running = builds.filter(({ nodeId }) => nodeId !== undefined);
  const free = new Map(nodeIds.map((id) => [id, atOnce - running.filter(({ nodeId }) => nodeId === id).length]));
  const queued = builds.filter(({ nodeId }) => nodeId === undefined);
  const teams = new Map<string, { readonly count: number; readonly lastAt: number }>();
  const rank = ({ teamId }: BuildEntry) => teams.get(teamId) ?? { count: 0, lastAt: lastBegan.get(teamId) ?? 0 };
  for (const build of running) teams.set(build.teamId, { ...rank(build), count: rank(build).count + 1 });
  const turns: Turn[] = [];
  while (queued.length > 0) {
    // The sort is stable, so that the oldest build of a team comes first.
    queued.sort((a, b) => rank(a).count - rank(b).count || rank(a).lastAt - rank(b).lastAt);
    const build = queued.shift();
    if (!build) break;
    const wanted = nodeOf(build);
    const [nodeId, room = 0] = [...free].filter(([id]) => wanted === undefined || wanted === id).toSorted((a, b) => b[1] - a[1])[0] ?? [];
    if (nodeId === undefined || room <= 0) continue;
    free.set(nodeId, room - 1);
    teams.set(build.teamId, { count: rank(build).count + 1, lastAt: Number.MAX_SAFE_INTEGER });
    turns.push({ build, nodeId });
  }
  return turns;
}
