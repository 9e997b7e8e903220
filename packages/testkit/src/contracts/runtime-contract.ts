// The contract of `Runtime`. Every runtime runs it with real sandboxes, whose root contains busybox alone.

import { chmodSync, chownSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mountRootFilesystem, unmountRootFilesystem } from "@skerry/layers";
import {
  type ContainerPlan,
  cgroupProcesses,
  createSlot,
  destroyCgroup,
  destroySlot,
  listCgroups,
  type NetworkSlot,
  networkNames,
  planAddresses,
  type Runtime,
  readdressSlot,
  routedPrefixes,
} from "@skerry/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeBusyboxImage } from "../busybox.ts";
import { instanceOf } from "../leftovers.ts";
import { waitUntil } from "../wait-until.ts";

export interface RuntimeContractOptions {
  readonly name: string;
  create(stateDir: string): Runtime;
}

export function runtimeContract(options: RuntimeContractOptions): void {
  describe(`runtime contract: ${options.name}`, () => {
    const dir = realpathSync(mkdtempSync(join(tmpdir(), `skerry-${options.name}-`)));
    // Root in a sandbox on runc must be able to reach its root file system.
    chmodSync(dir, 0o711);
    const instance = instanceOf(dir);
    const names = networkNames(instance);
    const usernsDir = join(dir, "userns");
    const ids = ["a", "b"].map((letter) => `i${letter.repeat(20)}`);
    let runtime: Runtime;
    let slot: NetworkSlot;

    beforeAll(async () => {
      runtime = options.create(join(dir, "state"));
      const addresses = planAddresses({ wanted: undefined, instance, routed: await routedPrefixes() });
      await destroySlot({ number: 0, names, usernsDir });
      slot = await createSlot({
        number: 0,
        names,
        addresses: addresses.of(0),
        ...(runtime.capabilities.userNamespace ? { usernsDir } : {}),
      });
      mkdirSync(join(dir, "image"));
      writeBusyboxImage(join(dir, "image"));
    });

    afterAll(async () => {
      for (const id of ids) {
        await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
        unmountRootFilesystem(join(dir, id, "root"));
      }
      await runtime.cleanUp();
      await destroySlot({ number: 0, names, usernsDir });
      await destroyCgroup(`/skerry-${instance}`);
      rmSync(dir, { recursive: true, force: true });
    });

    const cgroupOf = (id: string) => `/skerry-${instance}/${id}`;

    let plans = 0;

    /** Each plan has a new upper directory: the kernel may still be releasing the overlay of the sandbox before. */
    async function planOf(id: string, command: string, overrides: Partial<ContainerPlan> = {}): Promise<ContainerPlan> {
      await readdressSlot(slot, names);
      const own = join(dir, id);
      const disk = join(own, `disk${++plans}`);
      const [upper, work] = [join(disk, "upper"), join(disk, "work")];
      for (const folder of [join(own, "bundle"), join(own, "root"), upper, work]) mkdirSync(folder, { recursive: true });
      unmountRootFilesystem(join(own, "root"));
      const { userNamespace } = slot;
      if (userNamespace) chownSync(upper, userNamespace.idBase, userNamespace.idBase);
      const usernsFd = userNamespace ? openSync(userNamespace.path, "r") : undefined;
      mountRootFilesystem({
        layers: [join(dir, "image")],
        upper,
        work,
        target: join(own, "root"),
        ...(usernsFd === undefined ? {} : { usernsFd }),
      });
      if (usernsFd !== undefined) closeSync(usernsFd);
      return {
        id,
        bundleDir: join(own, "bundle"),
        rootDir: join(own, "root"),
        agentDir: join(dir, "image"),
        args: ["/bin/sh", "-c", command],
        hostname: id,
        networkNamespacePath: slot.namespacePath,
        ...(slot.userNamespace ? { userNamespace: slot.userNamespace } : {}),
        cgroupPath: cgroupOf(id),
        limits: { cpuCount: 1, memoryBytes: 256 * 1024 * 1024, overheadBytes: 128 * 1024 * 1024, pids: 500 },
        ...overrides,
      };
    }

    const isAlive = (pid: number) => {
      try {
        return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
      } catch {
        return false;
      }
    };

    it("starts a sandbox whose root contains busybox alone, and lists it", async () => {
      const [id = ""] = ids;
      const { pid } = await runtime.start(await planOf(id, "sleep 1000"));
      expect(isAlive(pid)).toBe(true);
      expect(await runtime.list()).toContain(id);
      expect(cgroupProcesses(cgroupOf(id))).toContain(pid);
    });

    it("destroys a running sandbox with all its processes, its state and its cgroup", async () => {
      const [id = ""] = ids;
      await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
      expect(await runtime.list()).not.toContain(id);
      expect(cgroupProcesses(cgroupOf(id))).toEqual([]);
      expect(listCgroups(`/skerry-${instance}`)).not.toContain(id);
    });

    it("accepts a sandbox that was already destroyed, and an unknown id", async () => {
      for (const id of [ids[0] ?? "", `i${"z".repeat(20)}`]) await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
    });

    it("ends with its first process", async () => {
      const id = ids[1] ?? "";
      const { pid } = await runtime.start(await planOf(id, "sleep 0.2"));
      await waitUntil("the sandbox's process ends", () => !isAlive(pid));
      await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
      expect(await runtime.list()).not.toContain(id);
    });

    it("fails with the message of the runtime when a sandbox does not start, and leaves a state that destroy can remove", async () => {
      const id = ids[1] ?? "";
      const plan = await planOf(id, "", { args: ["/no/such/program"] });
      await expect(runtime.start(plan)).rejects.toMatchObject({
        code: "runtime_failed",
        message: expect.stringContaining("/no/such/program"),
      });
      await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
      expect(await runtime.list()).not.toContain(id);
    });

    it("shows the guest its own hostname, processes, capabilities and interfaces only", async () => {
      const id = ids[1] ?? "";
      const plan = await planOf(
        id,
        "{ hostname; ls /proc | grep -c '^[0-9]*$'; grep CapBnd /proc/self/status; cat /proc/net/dev; } > /out 2>&1; sleep 1000",
      );
      await runtime.start(plan);
      await waitUntil("the guest has looked around", () => /eth0:/.test(readIfThere(join(plan.rootDir, "out"))));
      const [hostname, processes, capabilities, ...interfaces] = readFileSync(join(plan.rootDir, "out"), "utf8").trim().split("\n");
      expect(hostname).toBe(id);
      expect(Number(processes)).toBeLessThan(8);
      expect(capabilities).toMatch(/^CapBnd:\t00000000808405fb$/);
      const names = interfaces.map((line) => /^\s*(\w+):/.exec(line)?.[1]).filter((name) => name !== undefined);
      expect(names.sort()).toEqual(["eth0", "lo"]);
      await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
    });

    it("gives each start its own boot id, which root can neither change nor unmount", async () => {
      const id = ids[1] ?? "";
      const file = "/proc/sys/kernel/random/boot_id";
      const found: string[] = [];
      for (const _start of ["first", "second"]) {
        const attacks = `umount ${file}; umount -l ${file}; mount -t proc proc /proc; mount -o remount,rw,bind ${file}; echo x > ${file}`;
        const look = `{ cat ${file}; ${attacks}; cat ${file} /proc/1/root${file}; } > /out 2>/dev/null; mv /out /done`;
        const plan = await planOf(id, `until grep -q . ${file}; do sleep 0.05; done; ${look}; sleep 1000`);
        await runtime.start(plan);
        await waitUntil("the guest has looked", () => existsSync(join(plan.rootDir, "done")));
        const [bootId = "", ...afterAttacks] = readFileSync(join(plan.rootDir, "done"), "utf8").trim().split("\n");
        expect(bootId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(afterAttacks).toEqual([bootId, bootId]);
        found.push(bootId);
        await runtime.destroy({ id, cgroupPath: cgroupOf(id) });
      }
      expect(new Set([...found, readFileSync(file, "utf8").trim()]).size).toBe(3);
    });
  });
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
