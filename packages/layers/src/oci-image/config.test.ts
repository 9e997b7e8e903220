import { expect, test } from "vitest";
import { parseOciImageConfig } from "./config.ts";

const EMPTY = { architecture: "", env: [], user: "", workingDir: "", entrypoint: [], cmd: [], labels: {} };

test("reads what an image says about how to run it", () => {
  const config = {
    Env: ["PATH=/bin", "A=b=c"],
    User: "user:group",
    WorkingDir: "/srv",
    Entrypoint: ["/bin/app"],
    Cmd: ["serve", "--port=80"],
    Labels: { a: "b" },
  };
  expect(parseOciImageConfig(JSON.stringify({ architecture: "amd64", os: "linux", config }))).toEqual({
    architecture: "amd64",
    env: ["PATH=/bin", "A=b=c"],
    user: "user:group",
    workingDir: "/srv",
    entrypoint: ["/bin/app"],
    cmd: ["serve", "--port=80"],
    labels: { a: "b" },
  });
});

test.each([
  "{}",
  "null",
  "[]",
  '{"config": null}',
  '{"config": []}',
  '{"architecture": 1, "config": {"Env": "A=b", "User": 0, "WorkingDir": ["/"], "Entrypoint": {}, "Cmd": [1, null], "Labels": ["a"]}}',
])("what has not the right type counts as absent: %s", (text) => {
  expect(parseOciImageConfig(text)).toEqual(EMPTY);
});

test("a configuration that is not JSON is an error", () => {
  expect(() => parseOciImageConfig("{")).toThrow(expect.objectContaining({ code: "oci_image_unusable" }));
});
