import { expect, it } from "vitest";
import { isDatabaseAway } from "./database-away.ts";

const failure = (message: string, code?: string) => Object.assign(new Error(message), code === undefined ? {} : { code });

it.each([
  failure("connect", "ECONNREFUSED"),
  new AggregateError([failure("connect", "ECONNREFUSED")]),
  failure("terminating connection due to administrator command", "57P01"),
  failure("the database system is starting up", "57P03"),
  failure("", "08006"),
  failure("Connection terminated unexpectedly"),
  failure("timeout exceeded when trying to connect"),
])("takes $message for a database that is away", (error) => {
  expect(isDatabaseAway(error)).toBe(true);
});

it.each([failure("duplicate key", "23505"), failure("deadlock detected", "40P01"), new Error("anything"), undefined, "57P01"])(
  "takes %s for something else",
  (error) => {
    expect(isDatabaseAway(error)).toBe(false);
  },
);
