import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { Int32, StringMap } from "../schemas.ts";
import { createCheck, readQuery } from "./check.ts";

describe("createCheck", () => {
  const check = createCheck(Type.Object({ timeout: Int32({ description: "t", minimum: 0 }), map: Type.Optional(StringMap("m")) }), "body");

  it("lets through what it does not know", () => {
    check({ timeout: 1, other: { deep: [1] } });
  });

  it.each([
    [{ timeout: "5" }, "body/timeout"],
    [{ timeout: 1.5 }, "body/timeout"],
    [{ timeout: -1 }, "body/timeout"],
    [{ timeout: 2 ** 31 }, "body/timeout"],
    [{ timeout: 1e300 }, "body/timeout"],
    [{ timeout: null }, "body/timeout"],
    [{ timeout: true }, "body/timeout"],
    [{}, "body "],
    [[], "body "],
    [null, "body "],
    ["x", "body "],
    [{ timeout: 1, map: { a: 1 } }, "body/map/a"],
    [{ timeout: 1, map: { "a\nb": 1 } }, "body/map/"],
    [{ timeout: 1, map: [] }, "body/map"],
    [{ timeout: 1, map: null }, "body/map"],
  ])("refuses %j", (value, place) => {
    expect(() => check(value)).toThrow(`validation error: ${place}`);
  });
});

it("says that a field is not known where all fields are", () => {
  const check = createCheck(Type.Object({ limits: Type.Object({}, { additionalProperties: false }) }), "body");
  expect(() => check({ limits: { speed: 5 } })).toThrow("validation error: body/limits/speed is not known");
});

describe("readQuery", () => {
  const schema = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1 })), name: Type.Optional(Type.String()) });

  it("reads whole numbers where the schema has them, and nothing else", () => {
    expect(readQuery(schema, { limit: "5", name: "7" })).toEqual({ limit: 5, name: "7" });
  });

  it.each(["", "1.5", "1e3", " 1", "0x1", "9".repeat(16), "１"])("leaves %j, which is refused then", (limit) => {
    const read = readQuery(schema, { limit });
    expect(read).toEqual({ limit });
    expect(() => createCheck(schema, "query")(read)).toThrow("validation error: query/limit");
  });
});
