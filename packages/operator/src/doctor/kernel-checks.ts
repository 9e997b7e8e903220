// What the kernel must be able to do. Each is tried for real, in namespaces of its own, so that nothing stays.

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { chooseDiskLimit } from "@skerry/layers";
import { bad, type Check, failureOf, good, warn } from "./check.ts";

export const KERNEL_CHECKS: readonly Check[] = [
  {
    name: "cgroups",
    run: async () => {
      const root = "/sys/fs/cgroup";
      if (existsSync(join(root, "cgroup.controllers"))) {
        const has = readFileSync(join(root, "cgroup.controllers"), "utf8").trim().split(" ");
        const missing = ["cpu", "memory", "pids"].filter((name) => !has.includes(name));
        return missing.length === 0 ? good(`version 2 (${has.join(" ")})`) : bad(`version 2, without ${missing.join(", ")}`, CGROUP_MEND);
      }
      const missing = ["cpu", "memory", "pids"].filter((name) => !existsSync(join(root, name, "cgroup.procs")));
      return missing.length === 0 ? good("version 1 (cpu memory pids)") : bad(`no controller for ${missing.join(", ")}`, CGROUP_MEND);
    },
  },
  {
    name: "namespaces",
    run: async () => {
      const failure = await failureOf("unshare", ["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "true"]);
      return failure
        ? bad(failure, "This machine forbids namespaces. In a container it must be privileged; a virtual machine works.")
        : good("work");
    },
  },
  {
    name: "user namespaces",
    run: async () => {
      const failure = await failureOf("unshare", ["--user", "--map-root-user", "true"]);
      if (!failure) return good("work");
      const limit = readFileSync("/proc/sys/user/max_user_namespaces", "utf8").trim();
      const mend =
        limit === "0"
          ? "sysctl -w user.max_user_namespaces=10000"
          : "gVisor and runc need them; a plain chroot forbids them (pivot_root does not).";
      return bad(failure, mend);
    },
  },
  {
    name: "overlayfs",
    run: async ({ folder }) => {
      const where = existsSync(folder.root) ? folder.root : "/var/tmp";
      const dir = await mkdtemp(join(where, ".doctor-"));
      try {
        const script =
          'cd "$1" && mkdir l u w m && mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m && touch m/file && test -f u/file';
        const failure = await failureOf("unshare", ["--mount", "sh", "-c", script, "sh", dir]);
        if (!failure) return good(`works in ${where}`);
        return bad(
          failure,
          `The data folder must be on a file system that overlayfs can write to (ext4, XFS, btrfs): choose one with --data.`,
        );
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  },
  {
    name: "disk limits",
    run: async ({ folder }) => {
      const where = existsSync(folder.root) ? folder.root : "/var/tmp";
      const dir = await mkdtemp(join(where, ".doctor-"));
      try {
        const { missing } = await chooseDiskLimit({ dir, setting: "auto" });
        if (missing === undefined) return good(`disk files work in ${where}`);
        return warn(
          `none: ${missing}`,
          "Sandboxes can fill the disk of this machine. They need mkfs.ext4 (apt-get install e2fsprogs) and loop devices (modprobe loop; in a container, /dev/loop-control).",
        );
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  },
  {
    name: "nftables",
    run: async () => {
      const rules = "table inet doctor { chain post { type nat hook postrouting priority 100; masquerade; }; }";
      const failure = await failureOf("unshare", ["--net", "nft", rules]);
      return failure
        ? bad(failure, "apt-get install nftables; the kernel needs nf_tables and nft_masq (modprobe nf_tables).")
        : good("work, with NAT");
    },
  },
  {
    name: "virtual Ethernet",
    run: async () => {
      const failure = await failureOf("unshare", ["--net", "ip", "link", "add", "doctor0", "type", "veth", "peer", "name", "doctor1"]);
      return failure ? bad(failure, "apt-get install iproute2; the kernel needs the veth module (modprobe veth).") : good("works");
    },
  },
  {
    name: "IP forwarding",
    run: async () => {
      const on = readFileSync("/proc/sys/net/ipv4/ip_forward", "utf8").trim() === "1";
      return on ? good("on") : good("off; the platform turns it on when it starts");
    },
  },
  {
    name: "other firewalls",
    run: async () => {
      // Docker and ufw drop forwarded packets by default; an accept in our table does not outvote their drop.
      const drops = await droppingForwardChains();
      if (drops.length === 0) return good("none drops forwarded packets");
      return warn(
        `forwarded packets are dropped by default in: ${drops.join(", ")}`,
        "If sandboxes have no internet: iptables -I FORWARD -i 'sk+' -j ACCEPT; iptables -I FORWARD -o 'sk+' -j ACCEPT (with Docker: in DOCKER-USER).",
      );
    },
  },
];

const CGROUP_MEND =
  "Boot with the controllers enabled (cgroup_enable=memory), or mount /sys/fs/cgroup; in a container it must be writable.";

async function droppingForwardChains(): Promise<string[]> {
  const { stdout } = await runCommand("nft", ["-j", "list", "chains"], { maxOutputBytes: 16 * 1024 * 1024 });
  const { nftables } = JSON.parse(stdout) as {
    nftables: { chain?: { family: string; table: string; name: string; hook?: string; policy?: string } }[];
  };
  return nftables.flatMap(({ chain }) =>
    chain?.hook === "forward" && chain.policy === "drop" && !chain.table.startsWith("skerry_")
      ? [`${chain.family} ${chain.table} ${chain.name}`]
      : [],
  );
}
