// What a sandbox of each runtime sees of its area: its size, and its end.

import { chmodSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { mountRootFilesystem, newAreaId, openDiskAreas, unmountRootFilesystem } from "@skerry/layers";
import {
  createRuncRuntime,
  createRunscRuntime,
  createSlot,
  destroyCgroup,
  destroySlot,
  type HostFacts,
  networkNames,
  planAddresses,
  type Runtime,
  readHostFacts,
  routedPrefixes,
} from "@skerry/runtime";
import { instanceOf } from "@skerry/testkit";
import { writeBusyboxImage } from "@skerry/testkit/busybox";
import { testTools } from "@skerry/testkit/tools";
import { waitUntil } from "@skerry/testkit/wait-until";
import { describe, expect, it } from "vitest";

const RUNTIMES: readonly { name: string; create(stateDir: string, host: HostFacts): Runtime }[] = [
  { name: "runsc", create: (stateDir, host) => createRunscRuntime({ binary: testTools().runsc, stateDir, host }) },
  { name: "runc", create: (stateDir, host) => createRuncRuntime({ binary: testTools().runc, stateDir, host }) },
];

const SIZE_MB = 48;
/** Writes what it finds into its own root, which is where the test looks. */
const GUEST = [
  "df -m / | tail -1 > /before",
  "dd if=/dev/zero of=/big bs=1M count=200 2> /full; echo $? > /status",
  "df -m / | tail -1 > /after",
  "rm /big",
  "dd if=/dev/zero of=/again bs=1M count=20 2> /again-said && cat /bin/busybox > /copy && chmod 4755 /copy",
  "touch /done",
  "sleep 1000",
].join("\n");

describe.each(RUNTIMES)("a sandbox on a limited area: $name", ({ create }) => {
  it("sees its size, hears that there is no space left, goes on, and its neighbour has noticed nothing", async () => {
    const dir = realpathSync(mkdtempSync("/var/tmp/skerry-area-"));
    chmodSync(dir, 0o711);
    const instance = instanceOf(dir);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rmSync(dir, { recursive: true, force: true }));
    const image = join(dir, "image");
    mkdirSync(image);
    writeBusyboxImage(image);
    const areas = openDiskAreas({ dir: join(dir, "areas"), trash: dir, limit: "file", ready: 0, reserveBytes: 0 });
    stack.defer(async () => {
      for (const id of areas.list()) await areas.destroy(id);
    });

    const runtime = create(join(dir, "state"), readHostFacts());
    const names = networkNames(instance);
    const usernsDir = join(dir, "userns");
    const addresses = planAddresses({ wanted: undefined, instance, routed: await routedPrefixes() });
    await destroySlot({ number: 0, names, usernsDir });
    const withUserns = runtime.capabilities.userNamespace ? { usernsDir } : {};
    const slot = await createSlot({ number: 0, names, addresses: addresses.of(0), ...withUserns });
    stack.defer(() => destroySlot({ number: 0, names, usernsDir }));
    const { userNamespace } = slot;

    const area = await areas.create(newAreaId(), { sizeMb: SIZE_MB, ownerId: userNamespace?.idBase ?? 0 });
    const neighbour = await areas.create(newAreaId(), { sizeMb: SIZE_MB, ownerId: 0 });
    const [root, bundle] = [join(dir, "root"), join(dir, "bundle")];
    for (const path of [root, bundle]) mkdirSync(path);
    const usernsFd = userNamespace ? openSync(userNamespace.path, "r") : undefined;
    mountRootFilesystem({ layers: [image], ...area, target: root, ...(usernsFd === undefined ? {} : { usernsFd }) });
    if (usernsFd !== undefined) closeSync(usernsFd);
    stack.defer(() => void unmountRootFilesystem(root));

    const id = `i${"d".repeat(20)}`;
    const cgroupPath = `/skerry-${instance}/${id}`;
    stack.defer(() => destroyCgroup(`/skerry-${instance}`));
    stack.defer(() => runtime.cleanUp());
    stack.defer(() => runtime.destroy({ id, cgroupPath }));
    await runtime.start({
      id,
      bundleDir: bundle,
      rootDir: root,
      agentDir: image,
      args: ["/bin/sh", "-c", GUEST],
      hostname: id,
      networkNamespacePath: slot.namespacePath,
      ...(userNamespace ? { userNamespace } : {}),
      cgroupPath,
      limits: { cpuCount: 1, memoryBytes: 256 * 1024 * 1024, overheadBytes: 128 * 1024 * 1024, pids: 500 },
    });
    await waitUntil("the guest has done its part", () => existsSync(join(area.upper, "done")), 60_000);

    const said = (name: string) => readFileSync(join(area.upper, name), "utf8");
    const sizeOf = (line: string) => Number(line.trim().split(/\s+/)[1]);
    expect(sizeOf(said("before"))).toBeGreaterThanOrEqual(SIZE_MB);
    expect(sizeOf(said("before"))).toBeLessThan(SIZE_MB + 3);
    expect(said("full")).toContain("No space left on device");
    expect(Number(said("status"))).toBe(1);
    expect(Number(said("after").trim().split(/\s+/)[3])).toBe(0);
    expect(said("again-said")).toContain("20+0 records out");
    expect(statSync(join(area.upper, "copy")).mode & 0o7777).toBe(0o4755);
    expect(statSync(join(area.upper, "copy")).uid).toBe(userNamespace?.idBase ?? 0);
    expect(await areas.hostBytes(neighbour.id)).toBeLessThan(1024 * 1024);
  });
});
