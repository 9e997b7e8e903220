import { expect, test } from "vitest";
import { parseOciManifest } from "./manifest.ts";

const digest = `sha256:${"0a".repeat(32)}`;
const descriptor = { mediaType: "t", digest, size: 3, annotations: { a: "b" } };

test("reads what an image consists of", () => {
  expect(parseOciManifest(JSON.stringify({ schemaVersion: 2, config: descriptor, layers: [descriptor] }))).toEqual({
    kind: "image",
    config: { mediaType: "t", digest, size: 3 },
    layers: [{ mediaType: "t", digest, size: 3 }],
  });
});

test("reads an index, also with entries that say nothing of a processor", () => {
  const manifests = [{ ...descriptor, platform: { os: "linux", architecture: "arm64" } }, descriptor];
  expect(parseOciManifest(JSON.stringify({ manifests }))).toEqual({
    kind: "index",
    images: [
      { mediaType: "t", digest, size: 3, os: "linux", architecture: "arm64" },
      { mediaType: "t", digest, size: 3, os: "", architecture: "" },
    ],
  });
});

test.each([
  "",
  "<html>",
  "null",
  "[]",
  '{"schemaVersion": 1, "fsLayers": []}',
  JSON.stringify({ config: descriptor, layers: [{ ...descriptor, digest: "sha256:../../etc" }] }),
  JSON.stringify({ config: descriptor, layers: [{ ...descriptor, size: -1 }] }),
  JSON.stringify({ config: descriptor, layers: [{ ...descriptor, size: "3" }] }),
  JSON.stringify({ config: descriptor, layers: Array.from({ length: 1_001 }, () => descriptor) }),
  JSON.stringify({ layers: [] }),
  JSON.stringify({ manifests: [null] }),
])("refuses %s", (text) => {
  expect(() => parseOciManifest(text)).toThrow(expect.objectContaining({ code: "oci_image_unusable" }));
});
