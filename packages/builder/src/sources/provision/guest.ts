// Runs inside the sandbox of a build, with the agent's own Node.js, because an image need not have a shell. It looks at the image, and it
// changes what needs no package: the user, sudo's rules, the login profile, and the programs that the platform brings.
//
// It is one file without imports of the platform: its text is the argument of `node --eval`. Nothing here trusts the host with anything, and
// the host believes nothing of what it prints but its form.

import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

const DIRECTORIES = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];
const SYSTEM_PATH = DIRECTORIES.map((name) => `/${name}`).join(":");
const CERTIFICATES = "etc/ssl/certs/ca-certificates.crt";
/** Where other distributions have their certificates. */
const OTHER_CERTIFICATES = ["etc/pki/tls/certs/ca-bundle.crt", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "etc/ssl/cert.pem"];
const FIRST_ID = 1000;
const LAST_ID = 59_999;

export interface InspectRequest {
  readonly task: "inspect";
  readonly programs: readonly string[];
}

export interface Inspection {
  readonly osRelease: string;
  /** Those of the wanted programs that are there. `/bin/bash` and `ca-certificates` are names of their own. */
  readonly present: readonly string[];
}

export interface FinishRequest {
  readonly task: "finish";
  /** PATH of the image's configuration, or "". */
  readonly imagePath: string;
  /** A directory with `bash` and `busybox`, and the names that busybox has programs for. */
  readonly tools?: { readonly dir: string; readonly applets: readonly string[] };
}

export interface Finished {
  /** What the platform has brought. */
  readonly provided: readonly string[];
}

export function inspect(root: string, { programs }: InspectRequest): Inspection {
  const release = ["etc/os-release", "usr/lib/os-release"].map((path) => join(root, path)).find((path) => existsSync(path));
  const present = programs.filter((name) => {
    if (name === "/bin/bash") return isProgram(join(root, name));
    if (name === "ca-certificates") return hasCertificates(root);
    return findProgram(root, name) !== undefined;
  });
  return { osRelease: release === undefined ? "" : readFileSync(release, "utf8").slice(0, 16_384), present };
}

export function finish(root: string, request: FinishRequest): Finished {
  const provided = [...provideShell(root, request.tools)];
  linkCertificates(root);
  const user = addUser(root);
  fillHome(root, user);
  allowSudo(root);
  writeProfile(root, request.imagePath);
  return { provided };
}

function hasCertificates(root: string): boolean {
  return [CERTIFICATES, ...OTHER_CERTIFICATES].some((path) => existsSync(join(root, path)));
}

/** Programs and the agent look for the file of Debian, which Alpine and Arch have as well. */
function linkCertificates(root: string): void {
  const other = OTHER_CERTIFICATES.find((path) => existsSync(join(root, path)));
  if (other === undefined || existsSync(join(root, CERTIFICATES)) || isThere(join(root, CERTIFICATES))) return;
  makeDirectory(join(root, dirname(CERTIFICATES)));
  symlinkSync(`/${other}`, join(root, CERTIFICATES));
}

/** What the SDKs' ready commands ask of `ss`: is there a listener, also on one port (`sport = :8080`)? Starts no program. */
const SS = `#!/bin/bash
# Skerry: prints listening sockets, for images without iproute2.
wanted=
for argument; do
  case $argument in :*) wanted=\${argument#:} ;; esac
done
set -f
for table in tcp tcp6 udp udp6; do
  [ -r "/proc/net/$table" ] || continue
  # All lines at once. With a read for each line, the kernel goes through the table from the start each time.
  mapfile -t lines <"/proc/net/$table"
  for line in "\${lines[@]}"; do
    set -- $line
    case $table:$4 in tcp:0A | tcp6:0A | udp:07 | udp6:07) ;; *) continue ;; esac
    port=$((16#\${2##*:}))
    [ -z "$wanted" ] || [ "$wanted" = "$port" ] || continue
    printf '%s LISTEN 0 0 *:%s *:*\\n' "\${table%6}" "$port"
  done
done
`;

/** Every command of a client runs in /bin/bash. */
function provideShell(root: string, tools: FinishRequest["tools"]): string[] {
  const bash = join(root, "bin/bash");
  const elsewhere = findProgram(root, "bash");
  if (elsewhere !== undefined) {
    if (!isProgram(bash)) link(elsewhere, bash);
    return [];
  }
  if (!tools) return [];
  const provided = ["bash"];
  copyProgram(join(root, tools.dir, "bash"), bash);
  const names = tools.applets.filter((name) => findProgram(root, name) === undefined);
  if (names.length > 0) {
    const busybox = findProgram(root, "busybox") ?? "/bin/busybox";
    if (busybox === "/bin/busybox" && !isProgram(join(root, busybox))) copyProgram(join(root, tools.dir, "busybox"), join(root, busybox));
    for (const name of names) if (!isThere(join(root, "bin", name))) symlinkSync(busybox, join(root, "bin", name));
    provided.push(`busybox (${names.length} programs)`);
  }
  if (findProgram(root, "ss") === undefined) {
    const ss = join(root, "usr/local/bin/ss");
    makeDirectory(dirname(ss));
    writeFileSync(ss, SS);
    chmodSync(ss, 0o755);
    provided.push("ss (listening sockets only)");
  }
  makeDirectory(join(root, "tmp"), 0o1777);
  return provided;
}

function findProgram(root: string, name: string): string | undefined {
  const dir = DIRECTORIES.find((candidate) => isProgram(join(root, candidate, name)));
  return dir === undefined ? undefined : `/${dir}/${name}`;
}

function isProgram(path: string): boolean {
  const about = statSync(path, { throwIfNoEntry: false });
  return about?.isFile() === true && (about.mode & 0o111) !== 0;
}

const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function link(target: string, path: string): void {
  makeDirectory(dirname(path));
  if (!isThere(path)) symlinkSync(target, path);
}

function copyProgram(from: string, to: string): void {
  makeDirectory(dirname(to));
  copyFileSync(from, to);
  chmodSync(to, 0o755);
}

/** Also where the path is a link whose target does not exist yet, such as `/bin` without `/usr/bin`. */
function makeDirectory(path: string, mode = 0o755): void {
  const about = lstatSync(path, { throwIfNoEntry: false });
  if (about?.isSymbolicLink() && !existsSync(path)) makeDirectory(resolve(dirname(path), readlinkSync(path)), mode);
  if (about) return;
  makeDirectory(dirname(path));
  mkdirSync(path);
  chmodSync(path, mode);
}

interface User {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

function addUser(root: string): User {
  const users = readTable(root, "etc/passwd", ["root:x:0:0:root:/root:/bin/bash"]);
  const groups = readTable(root, "etc/group", ["root:x:0:"]);
  const known = users.find(([name]) => name === "user");
  if (known) return { uid: Number(known[2]), gid: Number(known[3]), home: known[5] || "/home/user" };
  const taken = new Set([...users, ...groups].map((fields) => Number(fields[2])));
  let id = FIRST_ID;
  while (taken.has(id) && id < LAST_ID) id += 1;
  const group = groups.find(([name]) => name === "user");
  const gid = group ? Number(group[2]) : id;
  if (!group) groups.push(["user", "x", String(gid), ""]);
  users.push(["user", "x", String(id), String(gid), "", "/home/user", "/bin/bash"]);
  writeTable(root, "etc/group", groups);
  writeTable(root, "etc/passwd", users);
  // A password that nobody has. Without the line, sudo refuses the account.
  addLine(root, "etc/shadow", "user:*:19723:0:99999:7:::");
  addLine(root, "etc/gshadow", "user:!::");
  return { uid: id, gid, home: "/home/user" };
}

function readTable(root: string, path: string, initial: readonly string[]): string[][] {
  const file = join(root, path);
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [...initial];
  return lines.filter((line) => line !== "").map((line) => line.split(":"));
}

function writeTable(root: string, path: string, rows: readonly (readonly string[])[]): void {
  const file = join(root, path);
  const isNew = !existsSync(file);
  makeDirectory(dirname(file));
  writeFileSync(file, `${rows.map((fields) => fields.join(":")).join("\n")}\n`);
  if (isNew) chmodSync(file, 0o644);
}

/** Where the file exists. */
function addLine(root: string, path: string, line: string): void {
  const file = join(root, path);
  if (!existsSync(file)) return;
  const text = readFileSync(file, "utf8");
  const [name = ""] = line.split(":");
  if (text.split("\n").some((other) => other.startsWith(`${name}:`))) return;
  writeFileSync(file, `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`);
}

const BASHRC = "# Read by interactive shells.\nPS1='\\u@\\h:\\w\\$ '\n";
const LOGIN = `[ -n "\${BASH-}" ] && [ -f ~/.bashrc ] && . ~/.bashrc\n`;

function fillHome(root: string, { uid, gid, home }: User): void {
  const dir = join(root, home);
  makeDirectory(dir);
  const skeleton = join(root, "etc/skel");
  const fresh: string[] = [];
  for (const name of existsSync(skeleton) ? readdirSync(skeleton) : []) {
    if (isThere(join(dir, name))) continue;
    cpSync(join(skeleton, name), join(dir, name), { recursive: true, verbatimSymlinks: true });
    fresh.push(name);
  }
  for (const [name, text] of [[".bashrc", BASHRC] as const, [".profile", LOGIN] as const]) {
    if (isThere(join(dir, name)) || (name === ".profile" && isThere(join(dir, ".bash_profile")))) continue;
    writeFileSync(join(dir, name), text);
    fresh.push(name);
  }
  for (const path of ["", ...fresh, ...fresh.flatMap((name) => below(join(dir, name)).map((rest) => join(name, rest)))]) {
    const about = lstatSync(join(dir, path));
    if (!about.isSymbolicLink()) chownSync(join(dir, path), uid, gid);
  }
}

const below = (path: string) => (lstatSync(path).isDirectory() ? (readdirSync(path, { recursive: true }) as string[]) : []);

const SUDO_RULE = "user ALL=(ALL:ALL) NOPASSWD: ALL\n";

function allowSudo(root: string): void {
  const groups = readTable(root, "etc/group", []);
  const admins = groups.filter(([name]) => name === "sudo" || name === "wheel");
  for (const fields of admins) {
    const members = (fields[3] ?? "").split(",").filter((name) => name !== "");
    if (!members.includes("user")) fields[3] = [...members, "user"].join(",");
  }
  if (admins.length > 0) writeTable(root, "etc/group", groups);
  if (findProgram(root, "sudo") === undefined) return;
  makeDirectory(join(root, "etc/sudoers.d"), 0o750);
  const rule = join(root, "etc/sudoers.d/user");
  if (!isThere(rule)) writeFileSync(rule, SUDO_RULE);
  chmodSync(rule, 0o440);
  const main = join(root, "etc/sudoers");
  const text = existsSync(main) ? readFileSync(main, "utf8") : "root ALL=(ALL:ALL) ALL\n";
  if (/^[#@]includedir\s+\/etc\/sudoers\.d\s*$/m.test(text)) return;
  writeFileSync(main, `${text}${text.endsWith("\n") ? "" : "\n"}@includedir /etc/sudoers.d\n`);
  chmodSync(main, 0o440);
}

const MARK = "# Skerry:";

/** For an image that has none. */
const PLAIN_PROFILE = `for profile in /etc/profile.d/*.sh; do
  [ -r "$profile" ] && . "$profile"
done
unset profile
`;

/**
 * A login shell keeps the PATH that it was given: the profiles of some distributions set their own. The image's PATH comes first where the
 * command brings none, so the programs of an image are found as its maker meant it. Nothing here starts a process: every command of a
 * client runs through it.
 */
function writeProfile(root: string, imagePath: string): void {
  const file = join(root, "etc/profile");
  const text = existsSync(file) ? readFileSync(file, "utf8") : PLAIN_PROFILE;
  if (text.includes(MARK)) return;
  const quick = text.replaceAll(/\$\(id -u\)|`id -u`/g, `\${EUID:-$(id -u)}`);
  const image = /^[\w@%+=:,./~-]*$/.test(imagePath) ? imagePath : "";
  makeDirectory(dirname(file));
  writeFileSync(file, `${MARK} a login shell keeps its PATH.\nskerry_path=\${PATH:-${SYSTEM_PATH}}\n${quick}${profileEnd(image)}`);
  chmodSync(file, 0o644);
}

const profileEnd = (image: string) => `
${MARK} the PATH that the command was given, that of the image, and that of the profile.
if [ "$skerry_path" = ${SYSTEM_PATH} ]; then
  skerry_path="${image}:$skerry_path:\${PATH-}:"
else
  skerry_path="$skerry_path:${image}:\${PATH-}:"
fi
PATH=
while [ -n "$skerry_path" ]; do
  skerry_dir="\${skerry_path%%:*}"
  skerry_path="\${skerry_path#*:}"
  case ":$PATH::" in
    *":$skerry_dir:"*) ;;
    *) PATH="$PATH\${PATH:+:}$skerry_dir" ;;
  esac
done
export PATH
unset skerry_path skerry_dir
`;

/** Under `node --eval`, the first argument is the request. */
const [, argument = ""] = process.argv;
if (argument.startsWith('{"task":')) {
  const request = JSON.parse(argument) as InspectRequest | FinishRequest;
  const answer = request.task === "inspect" ? inspect("/", request) : finish("/", request);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
