import { expect, test } from "vitest";
import { formatOciImageReference, isLoopbackRegistry, parseOciImageReference } from "./reference.ts";

const DIGEST = `sha256:${"0a".repeat(32)}`;

test.each([
  ["debian", "docker.io/library/debian:latest"],
  ["debian:bookworm-slim", "docker.io/library/debian:bookworm-slim"],
  ["team/app", "docker.io/team/app:latest"],
  ["docker.io/library/debian:12", "docker.io/library/debian:12"],
  ["host.example/app", "host.example/app:latest"],
  ["localhost/app:1", "localhost/app:1"],
  ["host:5000/a/b_c/d--e:V1.0_x", "host:5000/a/b_c/d--e:V1.0_x"],
  ["[::1]:5000/app", "[::1]:5000/app:latest"],
  [`app@${DIGEST}`, `docker.io/library/app@${DIGEST}`],
  [`127.0.0.1:5000/app:1@${DIGEST}`, `127.0.0.1:5000/app:1@${DIGEST}`],
])("%s is %s", (text, canonical) => {
  expect(formatOciImageReference(parseOciImageReference(text))).toBe(canonical);
  expect(parseOciImageReference(canonical)).toEqual(parseOciImageReference(text));
});

test.each([
  "",
  "Debian",
  "-debian",
  "--help",
  "debian:",
  "debian:a b",
  "debian:-x",
  "a//b",
  "/debian",
  "debian/",
  "../etc",
  "host.example/../etc",
  "a b",
  "app@sha256:abc",
  `app@${DIGEST}${DIGEST}`,
  `app@sha512:${"0".repeat(128)}`,
  "host..example/app",
  "-host.example/app",
  "host.example:port/app",
  "docker://debian",
  "user:password@host.example/app",
  "app\n--debug",
  "a".repeat(600),
])("%j is refused", (text) => {
  expect(() => parseOciImageReference(text)).toThrow(expect.objectContaining({ code: "oci_image_reference_invalid" }));
});

test("only this machine's own registries may speak plain HTTP", () => {
  const loopback = (text: string) => isLoopbackRegistry(parseOciImageReference(text));
  expect(["localhost:5000/a", "127.0.0.1/a", "127.1.2.3:80/a", "[::1]:5000/a"].map(loopback)).toEqual([true, true, true, true]);
  expect(["a", "localhost.example/a", "127.0.0.1.example/a", "10.0.0.1:5000/a"].map(loopback)).toEqual([false, false, false, false]);
});
