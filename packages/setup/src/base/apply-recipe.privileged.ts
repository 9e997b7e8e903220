import { chmod, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hostArch, koffiAddon } from "@skerry/agent/assemble";
import { runCommand, SubprocessError } from "@skerry/base";
import type { Distribution } from "./distribution.ts";
import { BASE_FILES, RESEED_PYTHON } from "./recipe.ts";
import { SETUP_PATH, type Tree } from "./tree.privileged.ts";

/** The addon through which reseed.cjs calls a function of OpenSSL that Node.js does not export. */
const RESEED_ADDON = "usr/local/lib/skerry/koffi.node";
/** sudo refuses a file that others than root may write. */
const MODES: Readonly<Record<string, number>> = { "etc/sudoers.d/user": 0o440 };

export interface ApplyOptions {
  readonly tree: Tree;
  readonly setupDir: string;
  readonly distribution: Distribution;
  readonly nodeBinary: string;
  readonly npmDir: string;
}

/** Turns a distribution with the recipe's packages into the base template. */
export async function applyRecipe(options: ApplyOptions): Promise<void> {
  const { tree, setupDir } = options;
  await addUser(tree);
  await removeTraces(tree);
  const files = join(setupDir, "files");
  await writeFiles(files, options);
  await runCommand("tar", ["--create", "--file", join(setupDir, "files.tar"), "--owner=0", "--group=0", "--directory", files, "."]);
  // tar replaces existing files and links instead of writing through them. Directories keep their owner and mode.
  const flags = ["--no-overwrite-dir", "--keep-directory-symlink", "--same-permissions"];
  await tree.run("/bin/tar", ["--extract", "--file", `${SETUP_PATH}/files.tar`, "--directory", "/", ...flags]);
  await tree.run("/bin/sh", ["-c", RESEED_PYTHON]);
}

async function addUser(tree: Tree): Promise<void> {
  const owner = await nameOf(tree, "1000");
  // In newer releases of Ubuntu, its default user has this id.
  if (owner !== undefined && owner !== "user") await tree.run("/usr/sbin/userdel", ["--remove", owner]);
  if (owner !== "user") {
    await tree.run("/usr/sbin/groupadd", ["--gid", "1000", "user"]);
    await tree.run("/usr/sbin/useradd", ["--uid", "1000", "--gid", "1000", "--create-home", "--shell", "/bin/bash", "user"]);
  }
  await tree.run("/usr/sbin/usermod", ["--append", "--groups", "sudo", "user"]);
}

async function nameOf(tree: Tree, uid: string): Promise<string | undefined> {
  const { stdout } = await tree.run("/usr/bin/getent", ["passwd", uid]).catch((error: unknown) => {
    // getent's exit code if there is no such user.
    if (error instanceof SubprocessError && error.exitCode === 2) return { stdout: "" };
    throw error;
  });
  return stdout.split(":")[0] || undefined;
}

/** Writes our own files as a tree that is extracted over the template's. */
async function writeFiles(dir: string, { distribution, nodeBinary, npmDir }: ApplyOptions): Promise<void> {
  const files: Readonly<Record<string, string>> = {
    ...BASE_FILES,
    "etc/hostname": "sandbox\n",
    // The runtime mounts each sandbox's own files over these two.
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/resolv.conf": "",
    "etc/machine-id": "",
    "etc/apt/sources.list": `${distribution.guestSources.join("\n")}\n`,
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text, { mode: MODES[path] ?? 0o644 });
  }
  await cp(koffiAddon(hostArch()), join(dir, RESEED_ADDON));
  await chmod(join(dir, RESEED_ADDON), 0o644);
  // The platform's Node.js and npm: newer than the distribution's, with far fewer packages.
  const bin = join(dir, "usr/local/bin");
  await mkdir(bin, { recursive: true });
  await mkdir(join(dir, "usr/local/lib/node_modules"), { recursive: true });
  await cp(nodeBinary, join(bin, "node"));
  await chmod(join(bin, "node"), 0o755);
  await cp(npmDir, join(dir, "usr/local/lib/node_modules/npm"), { recursive: true, dereference: true });
  for (const name of ["npm", "npx"]) await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
}

/** Removes what the build left: archive settings, which may contain a proxy's password, package lists, caches and logs. */
async function removeTraces(tree: Tree): Promise<void> {
  const files = ["/etc/apt/apt.conf.d/99mmdebstrap", "/etc/dpkg/dpkg.cfg.d/99mmdebstrap", "/var/lib/dbus/machine-id", "/.dockerenv"];
  await tree.run("/bin/rm", ["-f", ...files]);
  const dirs = ["/etc/apt/sources.list.d", "/var/lib/apt/lists", "/var/cache/apt", "/var/log", "/var/tmp", "/tmp", "/run"];
  await tree.run("/bin/mkdir", ["-p", ...dirs]);
  await tree.run("/usr/bin/find", [...dirs, "-mindepth", "1", "-delete"]);
  await tree.run("/bin/mkdir", ["-p", "/var/lib/apt/lists/partial", "/var/cache/apt/archives/partial"]);
  // Allows pip to install into the system, as users expect in a sandbox.
  await tree.run("/usr/bin/find", ["/usr/lib", "-maxdepth", "2", "-name", "EXTERNALLY-MANAGED", "-delete"]);
}
