import { chmod, cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { OperatorError } from "../../operator-error.ts";
import type { Report } from "../../terminal/steps.ts";
import { toolEnvironment } from "../tool-environment.ts";
import type { Distribution } from "./distribution.ts";
import { BASE_PACKAGES, LEFT_OUT, PROFILE, ROOT_PROFILE } from "./recipe.ts";

export interface BuildBaseOptions {
  /** An empty directory; on return it is the template's root file system. */
  readonly target: string;
  readonly distribution: Distribution;
  readonly nodeBinary: string;
  readonly npmDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Makes the base template's root file system. */
export async function buildBase(options: BuildBaseOptions): Promise<void> {
  const { target, report } = options;
  report("unpacking the distribution (half a minute)");
  await bootstrap(options);
  report("adding the user, Node.js and the profile");
  await addUser(options);
  await addNode(options);
  await writeSystemFiles(options);
  await removeTraces(target);
}

async function bootstrap({ target, distribution, signal }: BuildBaseOptions): Promise<void> {
  const args = ["--variant=minbase", "--mode=root", "--format=directory", `--include=${Object.keys(BASE_PACKAGES).join(",")}`];
  for (const pattern of LEFT_OUT) args.push(`--dpkgopt=path-exclude=${pattern}`);
  for (const option of ['Acquire::Retries "3";', ...(await aptTransportOptions())]) args.push(`--aptopt=${option}`);
  try {
    await runCommand("mmdebstrap", [...args, distribution.codename, target, ...distribution.buildSources], {
      env: toolEnvironment({ DEBIAN_FRONTEND: "noninteractive" }),
      timeoutMs: 900_000,
      maxOutputBytes: 16 * 1024 * 1024,
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError("the base template could not be made: mmdebstrap failed", {
      mend: [
        ...String(cause instanceof Error ? cause.message : cause)
          .split("\n")
          .slice(-10),
        "Check that apt-get update works here; the template is made from the archives in /etc/apt.",
      ],
      cause,
    });
  }
}

/** How this machine's apt reaches its archives (proxies, checks of archives that are frozen in time). */
async function aptTransportOptions(): Promise<string[]> {
  const { stdout } = await runCommand("apt-config", ["dump"], { env: toolEnvironment() });
  return stdout
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /^Acquire::(https?::|ftp::|Check-Valid-Until|Check-Date)/i.test(line) && !/ "";$/.test(line));
}

async function addUser({ target, signal }: BuildBaseOptions): Promise<void> {
  const inside = (command: string, args: readonly string[]) => runCommand("chroot", [target, command, ...args], { signal });
  await inside("/usr/sbin/groupadd", ["--gid", "1000", "user"]).catch(async (cause: unknown) => {
    // Ubuntu's own first user has this id in newer releases.
    await inside("/usr/sbin/userdel", ["--remove", "ubuntu"]).catch(() => Promise.reject(cause));
    await inside("/usr/sbin/groupadd", ["--gid", "1000", "user"]);
  });
  await inside("/usr/sbin/useradd", [
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--groups",
    "sudo",
    "--create-home",
    "--shell",
    "/bin/bash",
    "user",
  ]);
  await writeFile(join(target, "etc/sudoers.d/user"), "user ALL=(ALL:ALL) NOPASSWD: ALL\n", { mode: 0o440 });
}

/** The same Node.js that the platform runs on, and npm: newer than any distribution's, and a fraction of the packages. */
async function addNode({ target, nodeBinary, npmDir }: BuildBaseOptions): Promise<void> {
  const bin = join(target, "usr/local/bin");
  await mkdir(join(target, "usr/local/lib/node_modules"), { recursive: true });
  await cp(nodeBinary, join(bin, "node"));
  await chmod(join(bin, "node"), 0o755);
  await cp(npmDir, join(target, "usr/local/lib/node_modules/npm"), { recursive: true, dereference: true });
  for (const name of ["npm", "npx"]) await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
}

async function writeSystemFiles({ target, distribution }: BuildBaseOptions): Promise<void> {
  const files: Readonly<Record<string, string>> = {
    "etc/profile": PROFILE,
    "root/.profile": ROOT_PROFILE,
    "etc/hostname": "sandbox\n",
    // The runtime gives every sandbox its own content for these two; here they are plain files for it to cover.
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/resolv.conf": "",
    "etc/apt/sources.list": `${distribution.guestSources.join("\n")}\n`,
    "etc/apt/apt.conf.d/90sandbox": 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n',
  };
  await rm(join(target, "etc/resolv.conf"), { force: true });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), text, { mode: 0o644 });
  }
  const profile = await readFile(join(target, "etc/profile"), "utf8");
  if (profile !== PROFILE) throw new OperatorError("the login profile could not be written");
}

/** What this machine's set-up left in there: archive settings (a proxy's password may be among them), lists, caches, logs. */
async function removeTraces(target: string): Promise<void> {
  const paths = ["etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap", "etc/machine-id", "var/lib/dbus/machine-id"];
  for (const path of paths) await rm(join(target, path), { force: true });
  for (const dir of ["etc/apt/sources.list.d", "var/lib/apt/lists", "var/cache/apt", "var/log", "var/tmp", "tmp", "run"]) {
    await runCommand("find", [join(target, dir), "-mindepth", "1", "-delete"]);
  }
  await mkdir(join(target, "var/lib/apt/lists/partial"), { recursive: true });
  await mkdir(join(target, "var/cache/apt/archives/partial"), { recursive: true });
  await writeFile(join(target, "etc/machine-id"), "");
  // A sandbox is thrown away as a whole: pip may install into the system, as users expect of it.
  await runCommand("find", [join(target, "usr/lib"), "-maxdepth", "2", "-name", "EXTERNALLY-MANAGED", "-delete"]);
}
