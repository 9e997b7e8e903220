// Chains of uppers as overlayfs itself writes them, shown before and after they are merged.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mergeUppers, unmountRootFilesystem } from "@skerry/layers";
import { afterAll, expect, it } from "vitest";
import { mountPatiently } from "./mount-patiently.ts";

const dir = mkdtempSync(join(tmpdir(), "skerry-merge-"));
// Deeper than Node.js would go.
afterAll(() => execFileSync("rm", ["-rf", dir]));

const made = (...path: string[]) => {
  const folder = join(dir, ...path);
  mkdirSync(folder, { recursive: true });
  return folder;
};
/** `attribute set NAME VALUE FOLDER`, `attribute remove NAME FOLDER`: not every machine has setfattr. */
const ATTRIBUTE = `attribute() { /usr/bin/python3 -c 'import os, sys
a = [os.fsencode(x) for x in sys.argv[1:]]
os.setxattr(a[3], a[1], a[2]) if a[0] == b"set" else os.removexattr(a[2], a[1])' "$@"; }`;
const shell = (script: string, cwd: string) => execFileSync("/bin/bash", ["-ec", `${ATTRIBUTE}\n${script}`], { cwd, encoding: "utf8" });

function withRoot<T>(name: string, layers: readonly string[], work: (root: string) => T): { upper: string; value: T } {
  const [upper, workDir, target] = [made(name, "upper"), made(name, "work"), made(name, "root")];
  mountPatiently({ layers, upper, work: workDir, target });
  try {
    return { upper, value: work(target) };
  } finally {
    unmountRootFilesystem(target);
  }
}

/** Everything that a guest could see of a tree: kinds, modes, owners, times, links, attributes, and content. */
const PROGRAM = `
import hashlib, os, sys
os.chdir(sys.argv[1].encode())
inodes = {}
for folder, folders, files in os.walk(b"."):
  folders[:] = [name for name in folders if not name.startswith(b"00xx")]
  for name in sorted([b"."] + folders + files):
    path = os.path.join(folder, name)
    about = os.lstat(path)
    kind = oct(about.st_mode)
    text = b""
    if os.path.islink(path): text = os.readlink(path)
    elif os.path.isfile(path): text = hashlib.sha256(open(path, "rb").read()).hexdigest().encode()
    attributes = {n: os.getxattr(path, n, follow_symlinks=False) for n in sorted(os.listxattr(path, follow_symlinks=False)) if not n.startswith("trusted.overlay.")}
    time = 0 if os.path.isdir(path) and not os.path.islink(path) else about.st_mtime_ns
    inodes.setdefault(about.st_ino, []).append(path)
    print(path, kind, about.st_uid, about.st_gid, time, text, attributes)
print("one file:", [sorted(names) for names in inodes.values() if b"./pair" in names])
`;
const listing = (root: string) => execFileSync("/usr/bin/python3", ["-c", PROGRAM, root], { encoding: "utf8" }).split("\n").sort();

const BASE = `
mkdir -p etc kept gone/deep replaced opaque attrs modes; echo base > etc/file; echo base > kept/base; echo base > gone/deep/file
echo base > replaced/file; echo base > opaque/base; echo base > becomes-folder; ln -s etc link; echo base > deleted; echo base > again
attribute set user.a base attrs; attribute set user.b base attrs`;
const STEPS = [
  `echo one > etc/one; rm deleted; rm -r gone; mkdir late; echo one > late/one; attribute set user.c one attrs; chmod 700 modes
   ln etc/one etc/one-too; echo pair > pair; ln pair pair-too; echo hidden > kept/hidden; rm again; dd if=/dev/zero of=sparse bs=1 count=1 seek=10M status=none`,
  `echo two > etc/one; mkdir gone; echo two > gone/two; rm -r opaque; mkdir opaque; echo two > opaque/two; rm becomes-folder; mkdir becomes-folder
   echo two > becomes-folder/two; attribute remove user.a attrs; attribute remove user.c attrs; echo two > again; rm kept/hidden; chown 1000:1000 late`,
  `rm -r late; echo file > late; rm link; mkdir link; echo three > link/three; echo three > opaque/three; rm opaque/two; mv replaced moved || cp -r replaced moved
   rm -rf replaced; touch $'not \\xff text'; mkdir $'folder \\xfe'; echo three > $'folder \\xfe'/three; mkfifo pipe; rm again; chmod 4755 etc/file; rm -r gone`,
  `echo four > $'folder \\xfe'/four; attribute set user.d four $'folder \\xfe'; mkdir gone; echo four > gone/four; rm pipe; rm late; mkdir late; echo four > late/four`,
];

it.each([2, 3, 4])("%i uppers as one look the same above their layers, and above others", async (merged) => {
  const base = made(`base-${merged}`);
  shell(BASE, base);
  const uppers: string[] = [];
  for (const [at, step] of STEPS.entries()) {
    uppers.push(withRoot(`step-${merged}-${at}`, [base, ...uppers], (root) => shell(step, root)).upper);
  }
  const target = made(`merged-${merged}`);
  await mergeUppers(uppers.slice(0, merged), target);
  const rest = uppers.slice(merged);
  const before = withRoot(`before-${merged}`, [base, ...uppers], listing).value;
  const after = withRoot(`after-${merged}`, [base, target, ...rest], listing).value;
  expect(after).toEqual(before);
  expect(before.join("\n")).toContain("four");
  expect(before).toContain("one file: [[b'./pair', b'./pair-too']]");
  // Another layer below shows what is only said of the layers below: deletions and opaque folders.
  const other = made(`other-${merged}`);
  shell(
    "mkdir -p gone opaque late link; echo other > deleted; echo other > gone/other; echo other > opaque/other; echo other > late/other",
    other,
  );
  expect(withRoot(`other-after-${merged}`, [other, target, ...rest], listing).value).toEqual(
    withRoot(`other-before-${merged}`, [other, ...uppers], listing).value,
  );
});

/** Longer than any path that the kernel takes. Beside it, one more of all that there can be in a folder. */
const DEEP = `
import os, sys
folder = os.open(sys.argv[1].encode(), os.O_RDONLY)
for level in range(60):
  name = b"%02d" % level + b"x" * 98
  try: os.mkdir(name, dir_fd=folder)
  except FileExistsError: pass
  folder = os.open(name, os.O_RDONLY, dir_fd=folder)
for name in os.listdir(folder): os.unlink(name, dir_fd=folder)
with open(os.open("of-" + sys.argv[2], os.O_CREAT | os.O_WRONLY, dir_fd=folder), "w") as file: file.write(sys.argv[2])
os.link("of-" + sys.argv[2], "linked", src_dir_fd=folder, dst_dir_fd=folder)
`;
const DEEP_LISTING = `
import os, sys
for folder, folders, files, fd in os.fwalk(sys.argv[1].encode()):
  folders.sort()
  for name in sorted(files + folders):
    about = os.lstat(name, dir_fd=fd)
    print(name[:20], about.st_mode, about.st_size, about.st_mtime_ns if name in files else "", name == b"linked" and about.st_nlink)
`;

it("goes deeper than any path is long, and keeps everything on the way", async () => {
  const base = made("base-deep");
  shell(BASE, base);
  const uppers: string[] = [];
  for (const [at, step] of STEPS.entries()) {
    const { upper } = withRoot(`deep-${at}`, [base, ...uppers], (root) => {
      shell(step, root);
      execFileSync("/usr/bin/python3", ["-c", DEEP, root, String(at)]);
    });
    uppers.push(upper);
  }
  const target = made("deep", "merged");
  await mergeUppers(uppers, target);
  const before = withRoot("before-deep", [base, ...uppers], listing).value;
  expect(withRoot("after-deep", [base, target], listing).value).toEqual(before);
  const deep = (root: string) => execFileSync("/usr/bin/python3", ["-c", DEEP_LISTING, root], { encoding: "utf8" });
  const found = withRoot("after-deep-2", [base, target], deep).value;
  expect(found).toEqual(withRoot("before-deep-2", [base, ...uppers], deep).value);
  expect(found).toContain("of-3");
  expect(found).not.toContain("of-2");
  // Nothing of the work is left beside it.
  expect(readdirSync(made("deep"))).toEqual(["merged"]);
});
