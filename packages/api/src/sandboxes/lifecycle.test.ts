import type { SandboxState } from "@skerry/store";
import { describe, expect, it } from "vitest";
import { next, type SandboxEvent } from "./lifecycle.ts";

const EVENTS: readonly SandboxEvent[] = ["started", "abandon", "kill", "expire", "exit", "gone"];

// One row per state, one column per event.
const TABLE: Readonly<Record<SandboxState, readonly string[]>> = {
  starting: ["running", "killing", "killing", "refuse", "refuse", "refuse"],
  running: ["refuse", "killing", "killing", "killing", "killing", "ended"],
  killing: ["refuse", "join", "join", "join", "join", "ended"],
  ended: ["refuse", "refuse", "refuse", "refuse", "refuse", "refuse"],
};

describe("next", () => {
  for (const [state, row] of Object.entries(TABLE)) {
    it(`from ${state} goes where the table says`, () => {
      const moves = EVENTS.map((event) => next(state as SandboxState, event));
      expect(moves.map((move) => (move.kind === "move" ? move.to : move.kind))).toEqual(row);
    });
  }
});
