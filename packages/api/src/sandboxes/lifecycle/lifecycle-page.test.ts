import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LISTED_AS } from "@skerry/store";
import { expect, it } from "vitest";
import { next, SANDBOX_EVENTS, SANDBOX_STATES, type SandboxEvent } from "./lifecycle.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../../docs/lifecycle.md"), "utf8");
const events = Object.keys(SANDBOX_EVENTS) as readonly SandboxEvent[];

function rows(header: string): readonly (readonly string[])[] {
  const [, table = ""] = page.split(`| ${header} |`);
  const lines = table.split("\n").slice(2);
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

it("the diagram of docs/lifecycle.md is that of the code", () => {
  const [, diagram = ""] = /```mermaid\n([\s\S]*?)```/.exec(page) ?? [];
  const drawn = [...diagram.matchAll(/^\s+(\w+) --> (\w+): (.+)$/gm)].flatMap(([, from, to, labels = ""]) =>
    labels.split(", ").map((event) => `${from} ${event} ${to}`),
  );
  const allowed = SANDBOX_STATES.flatMap((state) =>
    events.flatMap((event) => {
      const move = next(state, event);
      return move.kind === "move" ? [`${state} ${event} ${move.to}`] : [];
    }),
  );
  expect(drawn.toSorted()).toEqual(allowed.toSorted());
});

it("its tables are those of the code: events, and what waits and joins in each state", () => {
  expect(Object.fromEntries(rows("event | what happened").map(([event, what]) => [event, what]))).toEqual(SANDBOX_EVENTS);
  const names = (state: (typeof SANDBOX_STATES)[number], kind: string) =>
    events.filter((event) => next(state, event).kind === kind).join(", ");
  expect(rows("state | waits | joins | shown to callers as")).toEqual(
    SANDBOX_STATES.map((state) => [state, names(state, "wait"), names(state, "join"), LISTED_AS[state] ?? "nothing"]),
  );
});
