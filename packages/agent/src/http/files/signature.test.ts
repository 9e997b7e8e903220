import { expect, it } from "vitest";
import { fileSignature } from "./signature.ts";

const TOKEN = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";

it("makes the signature that clients make", () => {
  const request = { path: "hello.txt", operation: "read", username: "user", expiration: undefined } as const;
  expect(fileSignature(request, TOKEN)).toBe("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
});

it("depends on every part of the request", () => {
  const request = { path: "a", operation: "read", username: "user", expiration: 1 } as const;
  const variants = [
    request,
    { ...request, path: "b" },
    { ...request, operation: "write" as const },
    { ...request, username: "" },
    { ...request, expiration: undefined },
    { ...request, expiration: 2 },
  ];
  expect(new Set(variants.map((variant) => fileSignature(variant, TOKEN))).size).toBe(variants.length);
});
