import { existsSync } from "node:fs";
import { readFile, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { findRunsc, missingPackages, PLATFORM_PACKAGES, readTools } from "@skerry/setup";
import { clientUrls, readLiveProcess } from "@skerry/setup/folder";
import { isHealthy } from "../daemon/find-daemon.ts";
import { type Check, fail, failureOf, pass, warn } from "./check.ts";

const GIB = 1024 ** 3;

export const TOOL_CHECKS: readonly Check[] = [
  {
    name: "Debian packages",
    run: async () => {
      const missing = await missingPackages(Object.keys(PLATFORM_PACKAGES));
      if (missing.length === 0) return pass("all installed");
      return fail(`missing: ${missing.join(", ")}`, `Run ./skerry up, or: apt-get install ${missing.join(" ")}`);
    },
  },
  {
    name: "Node.js",
    run: async ({ repoRoot }) => {
      const wanted = (await readFile(join(repoRoot, ".node-version"), "utf8")).trim();
      return process.version === `v${wanted}`
        ? pass(process.version)
        : fail(`${process.version}, not v${wanted}`, "Start the command as ./skerry, which uses its own Node.js.");
    },
  },
  {
    name: "runsc",
    run: async ({ folder, settings }) => {
      const recorded = (await readTools(folder))?.runsc;
      const binary = await findRunsc(folder.binDir, recorded?.sha512);
      const fix = "Run ./skerry up, which downloads or builds it.";
      if (!binary)
        return settings.runtime === "gvisor"
          ? fail("not in the data folder", fix)
          : warn("not in the data folder; the platform uses runc", fix);
      // Starts a gVisor sandbox on the host's own root. If this fails, every sandbox fails.
      const failure = await failureOf(binary.path, ["--ignore-cgroups", "--network=none", "do", "--quiet", "/bin/true"]);
      const found = `${binary.version}, sha512 ${binary.sha512.slice(0, 12)}`;
      return failure
        ? fail(
            `${found}: cannot start a sandbox: ${failure}`,
            "gVisor needs user namespaces, and ptrace or seccomp. It does not work in a plain chroot.",
          )
        : pass(`${found}, starts a sandbox`);
    },
  },
  {
    name: "runc",
    run: async ({ folder }) => {
      const path = (await readTools(folder))?.runc?.path ?? "/usr/sbin/runc";
      if (!existsSync(path)) return fail(`${path} does not exist`, "Run: apt-get install runc");
      const { stdout } = await runCommand(path, ["--version"]);
      const version = /^runc version (\d+)\.(\d+)\S*/m.exec(stdout);
      const [major = 0, minor = 0] = [version?.[1], version?.[2]].map(Number);
      return major > 1 || (major === 1 && minor >= 1)
        ? pass(version?.[0] ?? "")
        : fail(stdout.split("\n")[0] ?? "", "Install runc 1.1 or later.");
    },
  },
  {
    name: "disk",
    run: async ({ folder }) => {
      let dir = folder.root;
      while (!existsSync(dir)) dir = dirname(dir);
      const { bavail, bsize } = await statfs(dir);
      const free = bavail * bsize;
      const found = `${(free / GIB).toFixed(1)} GiB free for ${folder.root}`;
      return free >= 5 * GIB
        ? pass(found)
        : fail(
            found,
            "The set-up needs about 3 GiB, and sandboxes write to this disk. Free some space, or choose another folder with --data.",
          );
    },
  },
  {
    name: "ports",
    run: async ({ folder, settings }) => {
      if (await readLiveProcess(folder.pidFile)) {
        const { api } = clientUrls(settings);
        return (await isHealthy(api))
          ? pass(`${settings.apiPort} and ${settings.edgePort} are in use by the platform, which answers`)
          : fail(`the platform runs, but ${api}/health does not answer`, "Look at ./skerry logs, then run ./skerry restart.");
      }
      const taken: number[] = [];
      for (const port of [settings.apiPort, settings.edgePort]) if (!(await canListen(settings.listen, port))) taken.push(port);
      if (taken.length === 0) return pass(`${settings.apiPort} and ${settings.edgePort} are free on ${settings.listen}`);
      return fail(
        `in use by another program: ${taken.join(", ")}`,
        "Find the program with ss -ltnp, or choose other ports: ./skerry up --api-port 4780 --edge-port 4781",
      );
    },
  },
];

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
