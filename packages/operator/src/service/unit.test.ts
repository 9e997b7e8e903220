import { expect, test } from "vitest";
import { environmentText, serviceOf, unitText } from "./unit.ts";

test("the service of the usual data folder is called skerry, others after their folder", () => {
  expect(serviceOf("/var/lib/skerry").unitFile).toBe("/etc/systemd/system/skerry.service");
  expect(serviceOf("/srv/second").name).toBe("skerry-second");
  expect(serviceOf("/srv/second", "sandboxes").environmentFile).toBe("/etc/default/sandboxes");
  expect(() => serviceOf("/srv/two words")).toThrow("cannot be the name");
  expect(() => serviceOf("/srv/x", "../x")).toThrow("cannot be the name");
});

test("paths with spaces and percent signs are one word each in the unit", () => {
  const text = unitText(serviceOf("/srv/x"), { program: "/opt/my code/skerry", dataDir: "/srv/50%" });
  expect(text).toContain('ExecStart="/opt/my code/skerry" service --data /srv/50%%\n');
  expect(text).toContain("KillMode=process\n");
});

test("only the platform's variables are kept for the service, with their special characters", () => {
  const env = {
    SKERRY_DOMAIN: "a.example",
    SKERRY_HTTP_PROXY: 'http://u:p"$\\@h',
    SKERRY_TEST_DEPTH: "full",
    HOME: "/root",
    SKERRY_DNS: "",
  };
  expect(environmentText(env)).toBe('SKERRY_DOMAIN="a.example"\nSKERRY_HTTP_PROXY="http://u:p\\"\\$\\\\@h"\n');
});
