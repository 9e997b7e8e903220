import { readFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { parseOsRelease } from "@skerry/setup";
import { type Check, fail, pass, warn } from "./check.ts";

const SUPPORTED = new Set(["debian 12", "debian 13", "ubuntu 22.04", "ubuntu 24.04"]);
const GIB = 1024 ** 3;

export const MACHINE_CHECKS: readonly Check[] = [
  {
    name: "root",
    run: async () =>
      process.getuid?.() === 0 ? pass("yes") : fail("not root, so the checks below are incomplete", "Run: sudo ./skerry doctor"),
  },
  {
    name: "system",
    run: async () => {
      const fields = parseOsRelease(await readFile("/etc/os-release", "utf8"));
      const name = fields.PRETTY_NAME ?? "unknown";
      return SUPPORTED.has(`${fields.ID} ${fields.VERSION_ID}`)
        ? pass(name)
        : warn(`${name} is not tested`, "Tested systems: Debian 12 and 13, Ubuntu 22.04 and 24.04.");
    },
  },
  {
    name: "kernel",
    run: async () => {
      const [major = 0, minor = 0] = release().split(".").map(Number);
      // runc sandboxes see their layers through idmapped mounts, which Linux has since 5.12.
      if (major > 5 || (major === 5 && minor >= 12)) return pass(release());
      return fail(release(), "Use Linux 5.12 or later. All tested distributions have it.");
    },
  },
  {
    name: "processor, memory",
    run: async () => {
      const available = Number(/^MemAvailable:\s+(\d+)/m.exec(await readFile("/proc/meminfo", "utf8"))?.[1] ?? 0) * 1024;
      const found = `${cpus().length} cores, ${(available / GIB).toFixed(1)} of ${(totalmem() / GIB).toFixed(1)} GiB available`;
      return available >= GIB
        ? pass(found)
        : warn(found, "The platform needs about 200 MiB, and an idle sandbox about 50 MiB. Give this host more memory.");
    },
  },
];
