// A file with several names stays one file, in the source and in every clone. A write under one name shows under the others.

import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

/** Each row has the names of one file, across folders. The third file loses `c` before the image is taken. `s` are symbolic links. */
const MAKE = `
set -e
mkdir -p /root/links/sub; cd /root/links
for one in first second third; do echo made > $one-a; ln $one-a $one-b; ln $one-a sub/$one-c; done
ln -s target s-a; ln s-a s-b
printf '%s\\n' made > $'odd \\xff\\n-a'; ln $'odd \\xff\\n-a' $'odd \\xff\\n-b'
`;

/** For each file: its names, whether they are one file, its link count, and its content. */
const LIST = `
import json, os
os.chdir(b"/root/links")
found = {}
for folder, folders, files in os.walk(b"."):
    for name in sorted(files):
        path = os.path.join(folder, name)
        about = os.lstat(path)
        text = os.readlink(path) if os.path.islink(path) else open(path, "rb").read() if os.path.isfile(path) else b""
        found.setdefault((about.st_dev, about.st_ino), []).append((repr(path), about.st_nlink, repr(text)))
print(json.dumps(sorted([sorted({names for names, _, _ in one}), sorted({count for _, count, _ in one}), sorted({text for _, _, text in one})] for one in found.values())))
`;

/** Keeps the file open under two of its names, and mapped, from before the image on. */
const HOLDER = `
import mmap, os, time
os.chdir("/root/links")
held, written = os.open("first-a", os.O_RDONLY), os.open("sub/first-c", os.O_RDWR | os.O_APPEND)
mapped = mmap.mmap(held, 5, prot=mmap.PROT_READ)
assert mapped[:] == b"made\\n"
open("/root/ready", "w").close()
while not os.path.exists("/root/go"):
    time.sleep(0.02)
seen = os.pread(held, 100, 0) + os.pread(written, 100, 0)
os.write(written, b"held\\n")
with open("/root/out", "wb") as out:
    out.write(seen)
os.rename("/root/out", "/root/done")
`;

describe.each(runtimesFor("hard links in clones"))("on %s, a file with several names", (runtime) => {
  let platform: SharedPlatform;
  const made: Sandbox[] = [];
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(async () => {
    for (const one of made) await one.kill();
    await platform?.[Symbol.asyncDispose]();
  });

  const own = (sandbox: Sandbox) => {
    made.push(sandbox);
    return sandbox;
  };
  const run = async (sandbox: Sandbox, script: string) => (await sandbox.commands.run(script, { user: "root" })).stdout;
  const listOf = async (sandbox: Sandbox): Promise<[string[], number[], string[]][]> =>
    JSON.parse(await run(sandbox, "python3 /root/list.py"));
  const source = async () => {
    const sandbox = own(await Sandbox.create(clientOf(platform)));
    await sandbox.files.write("/root/list.py", LIST, { user: "root" });
    await sandbox.files.write("/root/make.sh", MAKE, { user: "root" });
    await run(sandbox, "bash /root/make.sh");
    return sandbox;
  };
  const fork = async (sandbox: Sandbox) => {
    const answer = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 3_600 } });
    const [one] = answer.body as { sandbox: { sandboxID: string } }[];
    return own(await Sandbox.connect(one?.sandbox.sandboxID ?? "", clientOf(platform)));
  };
  const restart = async (sandbox: Sandbox) => {
    await callApi(platform, `/sandboxes/${sandbox.sandboxId}/pause`, { body: { memory: false } });
    await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
  };
  /** Checks that each file has all its names and one content. */
  const expectWhole = async (sandbox: Sandbox) => {
    const files = await listOf(sandbox);
    for (const [names, counts, texts] of files) expect([names, counts, texts.length]).toEqual([names, [names.length], 1]);
    return files;
  };

  it("is one file in sandboxes from a snapshot, in the source, in forks of forks, and after starts from the disk", async () => {
    const first = await source();
    const before = await expectWhole(first);
    expect(before.length).toBe(5);
    const { snapshotId } = await first.createSnapshot({ name: `links-${runtime}` });
    const clone = own(await Sandbox.create(snapshotId, clientOf(platform)));
    for (const one of [first, clone]) {
      expect(await listOf(one)).toEqual(before);
      await run(one, "cd /root/links; echo more >> first-b; echo more >> sub/third-c; rm second-a");
      expect(await run(one, "cd /root/links; cat first-a sub/first-c third-a third-b")).toBe("made\nmore\n".repeat(4));
      await expectWhole(one);
    }
    // Only one of its names was used since the areas below were frozen. All names must stay valid.
    const child = await fork(clone);
    const same = await expectWhole(child);
    expect(same).toEqual(await listOf(clone));
    await run(child, "cd /root/links; echo again >> first-a; chmod 600 third-a; touch -h s-b; echo x >> sub/second-c");
    const grandchild = await fork(child);
    await restart(child);
    await restart(grandchild);
    for (const one of [child, grandchild]) {
      expect(await run(one, "cd /root/links; cat first-b; cat sub/first-c; stat -c %a third-b sub/third-c; cat second-b")).toBe(
        `${"made\nmore\nagain\n".repeat(2)}600\n600\nmade\nx\n`,
      );
      await expectWhole(one);
    }
    await run(grandchild, "cd /root/links; echo end >> sub/first-c");
    expect(await run(grandchild, "cd /root/links; cat first-a first-b")).toBe("made\nmore\nagain\nend\n".repeat(2));
    expect(await run(clone, "cat /root/links/first-a")).toBe("made\nmore\n");
    for (const one of [clone, child, grandchild]) await one.kill();
    await Sandbox.deleteSnapshot(snapshotId, clientOf(platform));
  });

  it("is one file for a process that has it open, and for one that maps it", async () => {
    const first = await source();
    await first.files.write("/root/holder.py", HOLDER, { user: "root" });
    await first.commands.run("python3 /root/holder.py", { user: "root", background: true });
    await run(first, "until [ -e /root/ready ]; do sleep 0.05; done");
    await first.createSnapshot();
    // A clone without memory has no such process.
    const holders = runtime === "gvisor" ? [first, await fork(first)] : [first];
    for (const one of holders) {
      await run(one, "cd /root/links; echo more >> first-b; touch /root/go; until [ -e /root/done ]; do sleep 0.05; done");
      expect(await run(one, "cat /root/done; cd /root/links; cat first-a first-b sub/first-c")).toBe(
        `${"made\nmore\n".repeat(2)}${"made\nmore\nheld\n".repeat(3)}`,
      );
      await expectWhole(one);
    }
  });

  it("prevents an image if there is no space for its other names, and the sandbox keeps running", async () => {
    const first = await source();
    await run(first, "cd /root/links; for i in $(seq 200); do mkdir of-$i; ln first-a of-$i/name; done");
    const clone = await fork(first);
    await run(
      clone,
      "cd /root; echo more >> links/first-a; while fallocate -l 1G big$((n += 1)) 2>/dev/null; do :; done; cat /dev/zero > rest || true",
    );
    await expect(clone.createSnapshot()).rejects.toThrow(/several names \(hard links\).*no room/);
    await callApi(platform, `/sandboxes/${clone.sandboxId}/pause`, { body: { memory: false } });
    const refused = await callApi(platform, `/sandboxes/${clone.sandboxId}/fork`, { body: { timeout: 3_600 } });
    expect(JSON.stringify([refused.status, refused.body])).toMatch(/several names \(hard links\).*no room/);
    await Sandbox.connect(clone.sandboxId, clientOf(platform));
    expect(await run(clone, "cat /root/links/of-200/name; rm /root/big* /root/rest")).toBe("made\nmore\n");
    const child = await fork(clone);
    expect(await run(child, "cat /root/links/of-200/name /root/links/of-1/name")).toBe("made\nmore\n".repeat(2));
  });

  it("is one file if it belongs to the template, and in forks of a paused sandbox", async () => {
    const first = own(await Sandbox.create(clientOf(platform)));
    const find = `find /usr -xdev -type f -links +1 -printf '%i %p\\n' | sort | awk 'last == $1 { print name, $2; exit } { last = $1; name = $2 }'`;
    const [nameA = "", nameB = ""] = (await run(first, find)).trim().split(" ");
    expect(nameB).not.toBe("");
    await run(first, `printf changed >> ${nameA}`);
    const expectChanged = async (one: Sandbox, times: number) =>
      expect(await run(one, `tail -c ${times * 7} ${nameA}; tail -c ${times * 7} ${nameB}`)).toBe("changed".repeat(times * 2));
    await expectChanged(first, 1);
    await restart(first);
    await expectChanged(first, 1);
    await callApi(platform, `/sandboxes/${first.sandboxId}/pause`, { body: { memory: false } });
    const child = await fork(first);
    await expectChanged(child, 1);
    await run(child, `printf changed >> ${nameB}`);
    await expectChanged(child, 2);
    await Sandbox.connect(first.sandboxId, clientOf(platform));
    await expectChanged(first, 1);
  });
});
