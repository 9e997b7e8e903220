import { existsSync } from "node:fs";
import { readFile, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { findRunsc, missingPackages, PLATFORM_PACKAGES, readTools } from "@skerry/setup";
import { clientUrls, readLiveProcess } from "@skerry/setup/folder";
import { isHealthy } from "../daemon/find-daemon.ts";
import { bad, type Check, failureOf, good, warn } from "./check.ts";

const GIB = 1024 ** 3;

export const TOOL_CHECKS: readonly Check[] = [
  {
    name: "Debian packages",
    run: async () => {
      const missing = await missingPackages(Object.keys(PLATFORM_PACKAGES));
      if (missing.length === 0) return good("all present");
      return bad(`missing: ${missing.join(", ")}`, `./skerry up installs them; or: apt-get install ${missing.join(" ")}`);
    },
  },
  {
    name: "Node.js",
    run: async ({ repoRoot }) => {
      const wanted = (await readFile(join(repoRoot, ".node-version"), "utf8")).trim();
      return process.version === `v${wanted}`
        ? good(process.version)
        : bad(`${process.version}, not v${wanted}`, "Run it as ./skerry, which brings its own.");
    },
  },
  {
    name: "runsc",
    run: async ({ folder, settings }) => {
      const recorded = (await readTools(folder))?.runsc;
      const binary = await findRunsc(folder.binDir, recorded?.sha512);
      const mend = "./skerry up fetches or builds it.";
      if (!binary)
        return settings.runtime === "gvisor" ? bad("not in the data folder", mend) : warn("not in the data folder; runc was chosen", mend);
      // A whole sandbox, on this machine's own root: what fails here fails for every sandbox.
      const failure = await failureOf(binary.path, ["--ignore-cgroups", "--network=none", "do", "--quiet", "/bin/true"]);
      const found = `${binary.version}, sha512 ${binary.sha512.slice(0, 12)}`;
      return failure
        ? bad(
            `${found}: does not start a sandbox: ${failure}`,
            "gVisor needs user namespaces and ptrace or seccomp here; a plain chroot is not enough.",
          )
        : good(`${found}, starts a sandbox`);
    },
  },
  {
    name: "runc",
    run: async ({ folder }) => {
      const path = (await readTools(folder))?.runc?.path ?? "/usr/sbin/runc";
      if (!existsSync(path)) return bad(`not at ${path}`, "apt-get install runc");
      const { stdout } = await runCommand(path, ["--version"]);
      const version = /^runc version (\d+)\.(\d+)\S*/m.exec(stdout);
      const [major = 0, minor = 0] = [version?.[1], version?.[2]].map(Number);
      return major > 1 || (major === 1 && minor >= 1)
        ? good(version?.[0] ?? "")
        : bad(stdout.split("\n")[0] ?? "", "runc 1.1 or newer is needed.");
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
        ? good(found)
        : bad(found, "Set-up needs about 3 GiB, and sandboxes write here: free some, or choose another place with --data.");
    },
  },
  {
    name: "ports",
    run: async ({ folder, settings }) => {
      if (await readLiveProcess(folder.pidFile)) {
        const { api } = clientUrls(settings);
        return (await isHealthy(api))
          ? good(`${settings.apiPort} and ${settings.edgePort}: the platform, which answers`)
          : bad(`the platform runs but ${api}/health does not answer`, "./skerry logs; then ./skerry down and up");
      }
      const taken: number[] = [];
      for (const port of [settings.apiPort, settings.edgePort]) if (!(await canListen(settings.listen, port))) taken.push(port);
      if (taken.length === 0) return good(`${settings.apiPort} and ${settings.edgePort} are free on ${settings.listen}`);
      return bad(
        `taken by another program: ${taken.join(", ")}`,
        "See who: ss -ltnp. Or choose others: ./skerry up --api-port 4780 --edge-port 4781",
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
