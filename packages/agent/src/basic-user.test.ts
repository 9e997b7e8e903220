import { expect, it } from "vitest";
import { basicName } from "./basic-user.ts";

const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

it.each([
  [undefined, undefined],
  [basic("user:"), "user"],
  [basic("user:pass:word"), "user"],
  [basic(":"), ""],
  [basic("nocolon"), undefined],
  ["Bearer abc", undefined],
  ["Basic ???", undefined],
])("reads the name of %j", (header, expected) => {
  expect(basicName(header)).toBe(expected);
});
