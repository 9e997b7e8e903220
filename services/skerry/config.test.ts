import { expect, it } from "vitest";
import { parseServeConfig } from "./config.ts";

it.each([
  ["127.0.0.1", "http://127.0.0.1:4682"],
  ["::1", "http://[::1]:4682"],
  ["machine.example", "http://machine.example:4682"],
])("a node that listens on %s is reached at %s", (listen, url) => {
  expect(parseServeConfig({ SKERRY_LISTEN: listen }).nodeUrl).toBe(url);
});

it.each(["0.0.0.0", "::"])("a node that listens on %s needs an address for edges", (listen) => {
  const split = { SKERRY_LISTEN: listen, SKERRY_ROLES: "api,node" };
  expect(() => parseServeConfig(split)).toThrow("SKERRY_NODE_URL must be the address at which edges reach this node");
  const url = "http://10.0.0.7:4682";
  expect(parseServeConfig({ ...split, SKERRY_NODE_URL: url }).nodeUrl).toBe(url);
  expect(parseServeConfig({ SKERRY_LISTEN: listen }).roles.size).toBe(3);
});

it.each(["SKERRY_NODE_URL", "SKERRY_CONTROL_URL", "SKERRY_NODES"])("%s takes only HTTP addresses", (name) => {
  for (const url of ["10.0.0.7:4682", "ftp://10.0.0.7", "http://"]) expect(() => parseServeConfig({ [name]: url })).toThrow(`not "${url}"`);
});

it("reads the former name of the setting that limits disks", () => {
  expect(parseServeConfig({ SKERRY_DISK_LIMIT: "image" }).diskLimit).toBe("file");
  expect(parseServeConfig({ SKERRY_DISK_LIMIT: "file" }).diskLimit).toBe("file");
});
