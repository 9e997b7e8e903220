import { readFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { parseOsRelease } from "@skerry/setup";
import { bad, type Check, good, warn } from "./check.ts";

const SUPPORTED = new Set(["debian 12", "debian 13", "ubuntu 22.04", "ubuntu 24.04"]);
const GIB = 1024 ** 3;

export const MACHINE_CHECKS: readonly Check[] = [
  {
    name: "root",
    run: async () =>
      process.getuid?.() === 0 ? good("yes") : bad("no: the checks below are not complete", "Run this as root: sudo ./skerry doctor"),
  },
  {
    name: "system",
    run: async () => {
      const fields = parseOsRelease(await readFile("/etc/os-release", "utf8"));
      const name = fields.PRETTY_NAME ?? "unknown";
      return SUPPORTED.has(`${fields.ID} ${fields.VERSION_ID}`)
        ? good(name)
        : warn(`${name}: nobody has tested this one`, "Debian 12 and 13, Ubuntu 22.04 and 24.04 are tested.");
    },
  },
  {
    name: "kernel",
    run: async () => {
      const [major = 0, minor = 0] = release().split(".").map(Number);
      // Idmapped mounts, which runc sandboxes see their layers through, came with 5.12.
      if (major > 5 || (major === 5 && minor >= 12)) return good(release());
      return bad(release(), "Use Linux 5.12 or newer (every supported distribution has it).");
    },
  },
  {
    name: "processor, memory",
    run: async () => {
      const available = Number(/^MemAvailable:\s+(\d+)/m.exec(await readFile("/proc/meminfo", "utf8"))?.[1] ?? 0) * 1024;
      const found = `${cpus().length} cores, ${(available / GIB).toFixed(1)} of ${(totalmem() / GIB).toFixed(1)} GiB available`;
      return available >= GIB
        ? good(found)
        : warn(found, "An idle sandbox needs about 50 MiB, the platform 200: give this machine more memory.");
    },
  },
];
