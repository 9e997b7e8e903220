import type { SandboxState } from "@skerry/store";
import { describe, expect, it } from "vitest";
import { next, PASSING_STATES, SANDBOX_EVENTS, SANDBOX_STATES, type SandboxEvent } from "./lifecycle.ts";

const EVENTS = Object.keys(SANDBOX_EVENTS) as readonly SandboxEvent[];

// One row per state, one column per event; a dash stands for a refusal.
const TABLE = `
              started abandon kill    expire  exit    kept   gone  pause   paused pause_failed resume   resumed resume_failed snapshot     snapshot_over copy    copy_over
starting      running killing killing -       -       -      -     -       -      -            -        -       -             -            -             -       -
running       -       killing killing killing killing paused ended pausing -      -            -        -       -             snapshotting -             -       -
snapshotting  -       wait    wait    wait    wait    paused ended wait    -      -            wait     -       -             -            running       -       -
pausing       -       wait    wait    join    wait    paused ended join    paused running      wait     -       -             -            -             -       -
paused        -       killing killing killing -       paused ended -       -      -            resuming -       -             -            -             copying -
copying       -       wait    wait    -       -       paused ended -       -      -            wait     -       -             -            -             -       paused
resuming      -       wait    wait    -       wait    paused ended wait    -      -            join     running paused        -            -             -       -
killing       -       join    join    join    join    -      ended -       -      -            -        -       -             -            -             -       -
ended         -       -       -       -       -       -      -     -       -      -            -        -       -             -            -             -       -
`;

const [header = [], ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));

describe("next", () => {
  it("is asked about every state and event", () => {
    expect(header).toEqual(EVENTS);
    expect(rows.map(([state]) => state)).toEqual(SANDBOX_STATES);
  });

  for (const [state = "", ...cells] of rows) {
    it(`from ${state} goes where the table says`, () => {
      const moves = EVENTS.map((event) => next(state as SandboxState, event));
      expect(moves.map((move) => (move.kind === "move" ? move.to : move.kind === "refuse" ? "-" : move.kind))).toEqual(cells);
    });
  }

  it("never waits for what does not come to an end by itself", () => {
    for (const state of SANDBOX_STATES) {
      const waits = EVENTS.some((event) => next(state, event).kind === "wait");
      if (waits) expect(PASSING_STATES.has(state), state).toBe(true);
    }
  });

  it("lets every sandbox be ended, from any state or after what is under way there", () => {
    for (const state of SANDBOX_STATES) if (state !== "ended") expect(next(state, "kill").kind).not.toBe("refuse");
  });
});
