import { expect, it } from "vitest";
import { cgroupRootsIn } from "./cgroup.privileged.ts";

it("finds every hierarchy of a machine with both cgroup versions", () => {
  const mounts = [
    "tmpfs /sys/fs/cgroup tmpfs rw 0 0",
    "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0",
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0",
    "overlay / overlay rw 0 0",
  ].join("\n");
  expect(cgroupRootsIn(mounts)).toEqual(["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"]);
});
