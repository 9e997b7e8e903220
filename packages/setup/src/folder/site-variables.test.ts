import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DataFolder, dataFolder } from "./data-folder.ts";
import { keptSite } from "./site-variables.ts";

let folder: DataFolder;
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), "skerry-site-")));
});
afterEach(() => rmSync(folder.root, { recursive: true }));

it("keeps the variables of the last start, in a file of root, until they are set to something else or nothing", async () => {
  const first = await keptSite(folder, { SKERRY_CA_FILE: "/ca.crt", SKERRY_HTTP_PROXY: "http://a:b@proxy:1", HOME: "/root" });
  expect((await keptSite(folder, {})).env).toEqual({});
  await first.keep();
  expect(statSync(folder.siteFile).mode & 0o777).toBe(0o600);
  const second = await keptSite(folder, { SKERRY_HTTP_PROXY: "" });
  expect(second.env).toEqual({ SKERRY_CA_FILE: "/ca.crt", SKERRY_HTTP_PROXY: "" });
  await second.keep();
  expect((await keptSite(folder, {})).env).toEqual({ SKERRY_CA_FILE: "/ca.crt" });
  expect((await keptSite(folder, { SKERRY_CA_FILE: "/other.crt" })).env).toEqual({ SKERRY_CA_FILE: "/other.crt" });
});

it("makes no file where nothing is set", async () => {
  await (await keptSite(folder, { HOME: "/root" })).keep();
  expect(existsSync(folder.siteFile)).toBe(false);
});
