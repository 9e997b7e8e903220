// Kernel features that the platform needs. Each check uses the feature in namespaces of its own, which end with the check.

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { chooseDiskLimit } from "@skerry/layers";
import { type Check, fail, failureOf, pass, warn } from "./check.ts";

export const KERNEL_CHECKS: readonly Check[] = [
  {
    name: "cgroups",
    run: async () => {
      const root = "/sys/fs/cgroup";
      if (existsSync(join(root, "cgroup.controllers"))) {
        const has = readFileSync(join(root, "cgroup.controllers"), "utf8").trim().split(" ");
        const missing = ["cpu", "memory", "pids"].filter((name) => !has.includes(name));
        return missing.length === 0
          ? pass(`version 2 (${has.join(" ")})`)
          : fail(`version 2, but no controller for ${missing.join(", ")}`, CGROUP_FIX);
      }
      const missing = ["cpu", "memory", "pids"].filter((name) => !existsSync(join(root, name, "cgroup.procs")));
      return missing.length === 0 ? pass("version 1 (cpu memory pids)") : fail(`no controller for ${missing.join(", ")}`, CGROUP_FIX);
    },
  },
  {
    name: "namespaces",
    run: async () => {
      const failure = await failureOf("unshare", ["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "true"]);
      return failure ? fail(failure, "This host forbids namespaces. Use a privileged container or a virtual machine.") : pass("available");
    },
  },
  {
    name: "user namespaces",
    run: async () => {
      const failure = await failureOf("unshare", ["--user", "--map-root-user", "true"]);
      if (!failure) return pass("available");
      const limit = readFileSync("/proc/sys/user/max_user_namespaces", "utf8").trim();
      const fix =
        limit === "0"
          ? "Run: sysctl -w user.max_user_namespaces=10000"
          : "gVisor and runc need user namespaces. A plain chroot forbids them; pivot_root allows them.";
      return fail(failure, fix);
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
        if (!failure) return pass(`writable in ${where}`);
        return fail(failure, "Overlayfs cannot write here. Choose a data folder on ext4, XFS or btrfs with --data.");
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
        if (missing === undefined) return pass(`disk files work in ${where}`);
        return warn(
          `none: ${missing}`,
          "Without limits, a sandbox can fill the host's disk. Limits need mkfs.ext4 (apt-get install e2fsprogs) and loop devices (modprobe loop; in a container, /dev/loop-control).",
        );
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  },
  {
    name: "nftables",
    run: async () => {
      const failure = await failureOf("unshare", ["--net", "nft", FIREWALL]);
      return failure
        ? fail(
            failure,
            "Run: apt-get install nftables. The kernel needs the modules nf_tables, nft_masq, nft_redir, nft_reject_inet, nft_connlimit, nft_limit, nft_log and nfnetlink_log.",
          )
        : pass("available, with NAT, counts of connections and a log");
    },
  },
  {
    name: "traffic control",
    run: async () => {
      if (await failureOf("tc", ["-Version"])) return fail("no program tc", "Run: apt-get install iproute2 (elsewhere iproute-tc).");
      const failure = await failureOf("unshare", ["--net", "sh", "-c", QUEUES]);
      return failure
        ? warn(
            failure,
            "Sandboxes cannot have a limit of bandwidth. It needs the kernel's modules sch_htb, sch_fifo and cls_u32 (modprobe sch_htb cls_u32).",
          )
        : pass("available, with token buckets");
    },
  },
  {
    name: "virtual Ethernet",
    run: async () => {
      const failure = await failureOf("unshare", ["--net", "ip", "link", "add", "doctor0", "type", "veth", "peer", "name", "doctor1"]);
      return failure
        ? fail(failure, "Run: apt-get install iproute2. The kernel needs the module veth (modprobe veth).")
        : pass("available");
    },
  },
  {
    name: "IP forwarding",
    run: async () => {
      const on = readFileSync("/proc/sys/net/ipv4/ip_forward", "utf8").trim() === "1";
      return on ? pass("on") : pass("off; the platform enables it when it starts");
    },
  },
  {
    name: "other firewalls",
    run: async () => {
      // Docker and ufw drop forwarded packets by default. An accept in our table does not override a drop in theirs.
      const drops = await droppingForwardChains();
      if (drops.length === 0) return pass("none of them drops forwarded packets");
      return warn(
        `forwarded packets are dropped by default by ${drops.join(", ")}`,
        "If sandboxes have no internet access, run: iptables -I FORWARD -i 'sk+' -j ACCEPT; iptables -I FORWARD -o 'sk+' -j ACCEPT (with Docker: in DOCKER-USER).",
      );
    },
  },
];

/** What the platform's own firewall uses. */
const FIREWALL = `table inet doctor {
  set connections { type ifname; flags dynamic; }
  set reported { type ifname; flags dynamic; timeout 1m; }
  chain out { type nat hook postrouting priority 100; masquerade; }
  chain in { type nat hook prerouting priority -100; meta l4proto tcp redirect to :1; }
  chain through {
    type filter hook forward priority 0;
    ct state established accept
    add @connections { iifname ct count over 8 } drop
    update @reported { iifname limit rate 10/second burst 100 packets } log group 1 snaplen 64
    meta l4proto tcp reject with tcp reset
  }
}`;

/** What a limit of bandwidth uses. */
const QUEUES = `set -e
ip link add doctor0 type veth peer name doctor1
tc qdisc add dev doctor0 root handle 1: htb default 2
tc class add dev doctor0 parent 1: classid 1:2 htb rate 8mbit
tc qdisc add dev doctor0 parent 1:2 pfifo_head_drop limit 32
tc filter add dev doctor0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 1:2`;

const CGROUP_FIX = "Boot with the controllers enabled (cgroup_enable=memory) and mount /sys/fs/cgroup. In a container it must be writable.";

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
