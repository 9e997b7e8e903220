import { create } from "@bufbuild/protobuf";
import { BuildSpecSchema, StartCommandSchema } from "@skerry/wire/node";
import { expect, test } from "vitest";
import { startCommandOf } from "./finalize.ts";

const context = { user: "user", workdir: "/app", env: { A: "1" } };
const parent = create(StartCommandSchema, { command: "serve", ready: "test -f ready", user: "root", workdir: "/", env: { B: "2" } });

const startOf = (fields: { startCommand?: string; readyCommand?: string }, inherited?: typeof parent) =>
  startCommandOf({ spec: create(BuildSpecSchema, fields), context }, inherited);

test("a start command without a ready command is given 20 seconds", () => {
  expect(startOf({ startCommand: "run" })).toEqual({ command: "run", ready: "sleep 20", ...context });
  expect(startOf({ startCommand: "run", readyCommand: "" })?.ready).toBe("sleep 20");
  expect(startOf({ startCommand: "run", readyCommand: "true" })?.ready).toBe("true");
});

test("a ready command alone is waited for", () => {
  expect(startOf({ readyCommand: "true" })).toEqual({ command: "", ready: "true", ...context });
});

test("the commands of another template are inherited together, with its own context", () => {
  expect(startOf({}, parent)).toBe(parent);
  expect(startOf({ startCommand: "", readyCommand: "" }, parent)).toBe(parent);
  expect(startOf({ readyCommand: "true" }, parent)).toEqual({ command: "", ready: "true", ...context });
  expect(startOf({})).toBeUndefined();
});
