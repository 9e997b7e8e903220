import { expect, it } from "vitest";
import { encodeCursor, parseCursor } from "./cursor.ts";

const cursor = { startedAt: 1_700_000_000_123, id: "iabc" };

it("reads back what it wrote, in its own direction only", () => {
  for (const order of ["asc", "desc"] as const) {
    const token = encodeCursor(cursor, order);
    expect(parseCursor(token, order)).toMatchObject(cursor);
    expect(() => parseCursor(token, order === "asc" ? "desc" : "asc")).toThrow("Invalid next token");
  }
});

it.each(["", "x", "AAAA", Buffer.from("2026-13-99T00:00:00.000Z__a").toString("base64url"), "é", "\0"])("refuses %j", (token) => {
  expect(() => parseCursor(token, "desc")).toThrow("Invalid next token");
});
