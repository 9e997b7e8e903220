// All metadata of files in sandboxes from a snapshot and in forks, with memory and without.

import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const MAKE = `
import os, socket, struct
os.makedirs("/root/all/folder")
os.chdir("/root/all")
def put(name, text="x"):
    with open(name, "w") as file:
        file.write(text)
    return name
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
NOBODY = 0xffffffff
lists = acl((0x01, 6, NOBODY), (0x02, 4, 1000), (0x04, 4, NOBODY), (0x08, 6, 1234), (0x10, 6, NOBODY), (0x20, 0, NOBODY))
def try_xattr(path, name, value):
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        put("refused " + name.replace(".", "_"), str(error.errno))
try_xattr(put("with-list"), "system.posix_acl_access", lists)
try_xattr("folder", "system.posix_acl_default", lists)
try_xattr(put("with-capability"), "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0))
try_xattr(put("with-attribute"), "user.colour", b"red\\0blue")
os.chown(put("set-user"), 1000, 1234); os.chmod("set-user", 0o6755)
os.chmod("folder", 0o3770)
with open("sparse", "wb") as file:
    file.truncate(64 * 1024 * 1024); file.seek(32 * 1024 * 1024); file.write(b"data")
os.symlink("no such target", "link"); os.lchown("link", 1000, 1000)
os.mkfifo("fifo", 0o640)
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("n" * 200)
put(os.fsdecode(b"not \\xff utf-8"))
# gVisor's own clock, by which it stamps what it writes, is some microseconds off the host's, which counts after the next start.
for name in os.listdir("."):
    os.utime(name, ns=(1_000_000_123, 1_500_000_456), follow_symlinks=False)
`;

const LIST = `
import hashlib, json, os
lines = []
for folder, folders, files in os.walk(b"/root/all"):
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        about = os.lstat(path)
        kind = about.st_mode
        line = [repr(path), oct(kind), about.st_uid, about.st_gid, about.st_nlink if not os.path.isdir(path) else 0, about.st_mtime_ns]
        if os.path.islink(path):
            line.append(repr(os.readlink(path)))
        elif os.path.isfile(path):
            line += [about.st_size, hashlib.sha256(open(path, "rb").read()).hexdigest()[:12], about.st_blocks < 1000]
        try:
            line += [f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}" for name in sorted(os.listxattr(path, follow_symlinks=False))]
        except OSError as error:
            line.append(f"no attributes: {error.errno}")
        lines.append(" ".join(map(str, line)))
print(json.dumps(sorted(lines)))
`;

describe.each(runtimesFor("metadata of files in clones"))("on %s, metadata of files", (runtime) => {
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const listOf = async (sandbox: Sandbox) => {
    const { stdout } = await sandbox.commands.run("python3 /root/list.py", { user: "root" });
    return JSON.parse(stdout) as string[];
  };

  it("is the same in sandboxes from a snapshot, in their forks, and after a start from the disk", async () => {
    const source = await Sandbox.create(clientOf(platform));
    for (const [name, program] of [
      ["make", MAKE],
      ["list", LIST],
    ] as const)
      await source.files.write(`/root/${name}.py`, program, { user: "root" });
    await source.commands.run("python3 /root/make.py", { user: "root" });
    const before = await listOf(source);
    expect(before.length).toBeGreaterThan(10);
    const { snapshotId } = await source.createSnapshot({ name: `metadata-${runtime}` });
    const made = await Sandbox.create(snapshotId, clientOf(platform));
    expect(await listOf(made)).toEqual(before);
    // Again, from the copies.
    const [fork] = (await callApi(platform, `/sandboxes/${made.sandboxId}/fork`, { body: { timeout: 3_600 } })).body as {
      sandbox: { sandboxID: string };
    }[];
    const forked = await Sandbox.connect(fork?.sandbox.sandboxID ?? "", clientOf(platform));
    expect(await listOf(forked)).toEqual(before);
    await forked.commands.run("echo changed >> /root/all/with-list && echo changed >> /root/all/set-user", { user: "root" });
    await callApi(platform, `/sandboxes/${forked.sandboxId}/pause`, { body: { memory: false } });
    await Sandbox.connect(forked.sandboxId, clientOf(platform));
    // gVisor keeps named pipes and sockets only in memory.
    const changed = runtime === "gvisor" ? /with-list|set-user|fifo|socket/ : /with-list|set-user/;
    const others = (lines: string[]) => lines.filter((line) => !changed.test(line));
    expect(others(await listOf(forked))).toEqual(others(before));
    expect(await listOf(source)).toEqual(before);
    for (const one of [source, made, forked]) await one.kill();
    await Sandbox.deleteSnapshot(snapshotId, clientOf(platform));
  });
});
