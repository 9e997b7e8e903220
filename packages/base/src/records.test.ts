import { Type } from "typebox";
import { expect, test } from "vitest";
import { recordParser } from "./records.ts";

const parse = recordParser({
  name: "house",
  version: 3,
  steps: { 2: ({ rooms, ...rest }) => ({ ...rest, version: 3, rooms: rooms.length }) },
  unmarkedVersion: 2,
  schema: Type.Object({ version: Type.Literal(3), rooms: Type.Integer(), door: Type.Optional(Type.String()) }),
});
const parsed = (record: unknown) => parse(JSON.stringify(record), "/a/house.json");

test("a record of the current version is read with what a later program added to it", () => {
  expect(parsed({ version: 3, rooms: 4, garden: true })).toEqual({ record: { version: 3, rooms: 4, garden: true } });
});

test("a record of an earlier version is upgraded, and one without a version is of the version that had none", () => {
  expect(parsed({ version: 2, rooms: ["hall", "attic"] })).toEqual({ record: { version: 3, rooms: 2 } });
  expect(parsed({ rooms: ["hall"] })).toEqual({ record: { version: 3, rooms: 1 } });
});

test("a record that does not match the schema of its version is damaged", () => {
  for (const damaged of [null, 7, {}, [], { version: "3", rooms: 1 }, { version: 3 }, { version: 3, rooms: "4" }, { version: 2 }]) {
    expect(parsed(damaged), JSON.stringify(damaged)).toBe("damaged");
  }
  for (const text of ["", "{", "rooms"]) expect(parse(text, "/a/house.json")).toBe("damaged");
});

test("a version that is not known is refused, with the file and what to do", () => {
  const refusal = (record: unknown) => {
    try {
      return parsed(record);
    } catch (error) {
      return error;
    }
  };
  expect(refusal({ version: 4 })).toMatchObject({
    code: "record_unreadable",
    message: expect.stringMatching(/^\/a\/house\.json has version 4, written by a later version of Skerry;.* start that version/),
  });
  expect(refusal({ version: 1 })).toMatchObject({ code: "record_unreadable", message: expect.stringContaining("an earlier version") });
});
