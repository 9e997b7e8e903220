import { expect, test } from "vitest";
import { readSignedUrl } from "./signed-request.ts";

const SIGNATURE = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
const S = `signature=${encodeURIComponent(SIGNATURE)}`;
const file = { path: "", username: "", operation: "read", expiration: undefined, signature: SIGNATURE };

test.each([
  ["GET", `/files?path=a%20b&username=root&${S}&signature_expiration=17`, { ...file, path: "a b", username: "root", expiration: 17 }],
  ["POST", `/files?${S}`, { ...file, operation: "write" }],
  ["GET", `/files?${S}&path=a?b`, { ...file, path: "a?b" }],
  ["GET", `/files?${S}&other=1&path=%2Fetc%2Fhosts`, { ...file, path: "/etc/hosts" }],
])("%s %s", (method, target, expected) => {
  expect(readSignedUrl(method, target)).toEqual({ kind: "signed", file: expected });
});

test.each([
  ["GET", "/files", "other"],
  ["GET", "/files?path=a", "other"],
  ["GET", `/files/?${S}`, "other"],
  ["GET", `//files?${S}`, "other"],
  ["GET", `/FILES?${S}`, "other"],
  ["POST", `/files/compose?${S}`, "other"],
  ["GET", `/init?${S}`, "other"],
  ["GET", "*", "other"],
  ["HEAD", `/files?${S}`, "other_method"],
  ["OPTIONS", `/files?${S}`, "other_method"],
  ["DELETE", `/files?${S}`, "other_method"],
  ["toString", `/files?${S}`, "other_method"],
  ["GET", "/files?signature=", "malformed"],
  ["GET", `/files?signature=${SIGNATURE.replace("/", "+")}`, "malformed"],
  ["GET", `/files?${S}&${S}`, "malformed"],
  ["GET", `/files?${S}&path=a&path=b`, "malformed"],
  ["GET", `/files?${S}&signature_expiration=`, "malformed"],
  ["GET", `/files?${S}&signature_expiration=soon`, "malformed"],
])("%s %s is %s", (method, target, kind) => {
  expect(readSignedUrl(method, target)).toEqual({ kind });
});
