import { SubprocessError } from "@skerry/base";
import { expect, test } from "vitest";
import { registryFailure } from "./registry-failure.ts";

const failed = (stderr: string, timedOut = false) =>
  new SubprocessError({
    command: "skopeo",
    exitCode: 1,
    signalName: null,
    stderr: `time="2026-01-01T00:00:00Z" level=fatal msg="${stderr.replaceAll('"', '\\"')}"`,
    timedOut,
  });

// As skopeo says it.
test.each([
  [
    "oci_image_not_found",
    'Error parsing image name "docker://host.example/app:2": reading manifest 2 in host.example/app: manifest unknown: manifest unknown',
  ],
  ["oci_repository_missing", "reading manifest 2 in host.example/app: name unknown: repository name not known to registry"],
  [
    "oci_image_forbidden",
    "initializing source docker://app:latest: reading manifest latest in docker.io/library/app: requested access to the resource is denied",
  ],
  ["oci_image_access_denied", "unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password"],
  ["oci_image_access_denied", "reading manifest 1 in host.example/app: unauthorized: authentication required"],
  [
    "registry_unreachable",
    'pinging container registry host.example: Get "https://host.example/v2/": dial tcp: lookup host.example: no such host',
  ],
  ["registry_unreachable", 'pinging container registry 10.0.0.1:5000: Get "https://10.0.0.1:5000/v2/": context deadline exceeded'],
  ["registry_untrusted", 'Get "https://host.example/v2/": x509: certificate signed by unknown authority'],
  ["registry_unreachable", 'Get "https://host.example/v2/": http: server gave HTTP response to HTTPS client'],
  [
    "registry_busy",
    "reading manifest latest in docker.io/library/app: toomanyrequests: You have reached your unauthenticated pull rate limit.",
  ],
  ["oci_image_damaged", "writing blob: Digest did not match, expected sha256:aa, got sha256:bb"],
  ["oci_image_wrong_architecture", 'choosing image instance: no image found in manifest list for architecture amd64, variant "", OS linux'],
  ["oci_image_wrong_architecture", 'choosing image instance: no image found in image index for architecture amd64, variant "", OS linux'],
  ["registry_status", "reading manifest 1 in host.example/app: received unexpected HTTP status: 502 Bad Gateway"],
  ["registry_status", "pinging container registry host.example: StatusCode: 500, <html>"],
  ["registry_blocked", "registry host.example/app is blocked in /etc/containers/registries.conf"],
  ["oci_image_pull_failed", "open /etc/containers/policy.json: permission denied"],
])("%s: %s", (code, message) => {
  const failure = registryFailure("host.example/app:2", failed(message));
  expect(failure.code).toBe(code);
  expect(failure.publicMessage).toMatch(/^OCI image host\.example\/app:2: /);
  // For the log: what the program said, without its wrapping and the name, which is told already.
  expect(failure.message).toContain(message.replace(/^Error parsing image name "[^"]*": /, "").slice(0, 100));
  expect(failure.message).not.toContain("level=fatal");
});

test("a limit that ran out is a registry that takes too long", () => {
  expect(registryFailure("app", failed("anything", true))).toMatchObject({ code: "registry_unreachable" });
});

test("a program that can't be started is told as it is", () => {
  expect(registryFailure("app", new Error("spawn skopeo ENOENT"))).toMatchObject({
    code: "oci_image_pull_failed",
    message: expect.stringContaining("spawn skopeo ENOENT"),
  });
});
