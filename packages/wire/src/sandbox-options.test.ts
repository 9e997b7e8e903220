import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { decodeOptions, encodeOptions, parseOptions, SandboxOptionsSchema } from "./node.ts";

const OF_LATER = { allowInternetAccess: false, ofALaterVersion: { deep: [1] } };

it("keeps what was chosen, and that nothing was chosen", () => {
  for (const options of [{}, { allowInternetAccess: true }, { allowInternetAccess: false }]) {
    expect(parseOptions(structuredClone(options))).toEqual(options);
    expect(decodeOptions(encodeOptions(options))).toEqual(options);
  }
  expect(decodeOptions(create(SandboxOptionsSchema))).toEqual({});
});

it("keeps options of a later version in what was stored, and sends none of them to a node", () => {
  expect(parseOptions(structuredClone(OF_LATER))).toEqual(OF_LATER);
  expect(() => encodeOptions(OF_LATER)).toThrow(/ofALaterVersion/);
});

it("refuses what does not fit the schema", () => {
  for (const json of [null, [], "{}", 1, { allowInternetAccess: "no" }, { allowInternetAccess: 0 }]) {
    expect(() => parseOptions(json), JSON.stringify(json)).toThrow();
  }
});

it("has only fields whose JSON form is their value", () => {
  const kinds = SandboxOptionsSchema.fields.map((field) => field.fieldKind);
  for (const kind of kinds) expect(["scalar", "list", "map", "message"]).toContain(kind);
});
