import { expect, it } from "vitest";
import { originOf } from "./origin.ts";

it.each([
  [{ host: "127.0.0.1:4680" }, "http://127.0.0.1:4680"],
  [{ host: "[::1]:4680" }, "http://[::1]:4680"],
  [{ host: "api.example.com", "x-forwarded-proto": "https" }, "https://api.example.com"],
  [{ host: "10.0.0.1", "x-forwarded-proto": "HTTPS, http", "x-forwarded-host": "api.example.com, inner" }, "https://api.example.com"],
  [{ host: "a", "x-forwarded-proto": "javascript" }, "http://a"],
])("of %j", (headers, origin) => {
  expect(originOf(headers)).toBe(origin);
});

it.each(["", "a b", "a/b", "a@b", "a?b", "a#b", "a:b", "a\\b", "a:1:2", "%0a", "é", "-", "a."])("refuses the host %j", (host) => {
  expect(() => originOf({ host })).toThrow(/^validation error: header Host/);
});
