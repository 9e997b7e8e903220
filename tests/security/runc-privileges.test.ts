import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "../e2e/client.ts";

interface HostNames {
  readonly area: string;
  readonly containerId: string;
  readonly slot: { readonly hostInterface: string };
}

/** Values that are unique to this host: of its boot, its disks and its firmware. Not every host has all of them. */
function hostIds(): string[] {
  const files = readdirSync("/sys/block").flatMap((name) =>
    ["serial", "device/serial", "device/wwid"].map((file) => `/sys/block/${name}/${file}`),
  );
  const firmware = ["product_uuid", "product_serial", "board_serial"].map((name) => `/sys/class/dmi/id/${name}`);
  const paths = ["/proc/sys/kernel/random/boot_id", "/proc/cmdline", "/etc/machine-id", ...files, ...firmware];
  return paths.flatMap((path) => {
    try {
      return [readFileSync(path, "utf8").trim()].filter((id) => id.length > 5);
    } catch {
      return [];
    }
  });
}

/** Searches the beginning of every kernel file, except those of processes, for some values. File names count too. */
const CRAWL = `
import json, os, stat
names = [name.encode() for name in json.load(open("/root/names.json"))]
looked, found = 0, []
for top in ("/proc", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit()]
        for name in folders + files:
            path = os.path.join(folder, name)
            looked += 1
            text = path.encode()
            try:
                about = os.lstat(path)
                if stat.S_ISLNK(about.st_mode):
                    text += os.readlink(path).encode()
                elif stat.S_ISREG(about.st_mode) and name not in ("kmsg", "trace_pipe"):
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    try:
                        text += os.read(fd, 65536)
                    finally:
                        os.close(fd)
            except OSError:
                pass
            found += [f"{path}: {one.decode()}" for one in names if one in text]
print(json.dumps({"looked": looked, "found": found[:20]}))
`;

// A runc sandbox shares the host's kernel. The guest is assumed to be root inside, and must have no rights outside.
describe("root inside a runc sandbox", () => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform("runc");
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const asRoot = (command: string) => sandbox.commands.run(`${command} 2>&1; echo "exit $?"`, { user: "root" });

  it.each([
    ["mount a file system", "mount -t tmpfs none /mnt"],
    ["mount procfs anew", "mount -t proc none /mnt"],
    ["unmount what covers /proc", "umount /proc/kcore"],
    ["unmount its boot id", "umount /proc/sys/kernel/random/boot_id"],
    ["move its boot id", "mount --move /proc/sys/kernel/random/boot_id /mnt"],
    ["change its boot id", "sh -c 'echo x > /proc/sys/kernel/random/boot_id || mount -o remount,rw,bind /proc/sys/kernel/random/boot_id'"],
    ["remount a read-only path", "mount -o remount,rw,bind /proc/sys"],
    ["make a device", "mknod /tmp/disk b 254 0"],
    ["make new namespaces", "unshare --user --mount true"],
    ["make new namespaces without a user namespace", "unshare --net true"],
    ["enter namespaces", "nsenter --target 1 --mount true && nsenter --target 1 --user true"],
    ["set the clock", "date -s 2001-01-01"],
    ["set a setting of the kernel", "sh -c 'echo 1 > /proc/sys/kernel/panic'"],
    ["trigger sysrq", "sh -c 'echo h > /proc/sysrq-trigger'"],
    ["read the kernel's log", "dmesg"],
    ["write to the agent's tree", "touch /.skerry/agent.js"],
    ["change an interface", "ip link set eth0 down"],
    ["raise its memory limit", "sh -c 'echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes || echo max > /sys/fs/cgroup/memory.max'"],
    ["make the files of its limits writable", "mount -o remount,rw /sys/fs/cgroup/memory || mount -o remount,rw /sys/fs/cgroup"],
  ])("can't %s", async (_what, command) => {
    const { stdout } = await asRoot(command);
    expect(stdout).toMatch(/exit [1-9]\d*\n$/);
  });

  it.each([
    ["packet sockets", "socket.socket(17, socket.SOCK_RAW)"],
    ["raw sockets", "socket.socket(2, socket.SOCK_RAW, 1)"],
    ["kernel crypto sockets", "socket.socket(38, socket.SOCK_SEQPACKET)"],
    ["hypervisor sockets", "socket.socket(40, socket.SOCK_STREAM)"],
  ])("can't open %s", async (_what, expression) => {
    const { stdout } = await asRoot(`python3 -c 'import socket; ${expression}'`);
    expect(stdout).toMatch(/PermissionError/);
  });

  it.each([
    ["bpf", 321],
    ["perf_event_open", 298],
    ["io_uring_setup", 425],
    ["userfaultfd", 323],
    ["keyctl", 250],
    ["open_by_handle_at", 304],
    ["kexec_load", 246],
    ["init_module", 175],
    ["fsopen", 430],
  ])("can't call %s", async (_name, number) => {
    const { stdout } = await asRoot(
      `python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(${number}, 0, 0, 0, 0, 0); print(r, ctypes.get_errno())'`,
    );
    expect(stdout).toContain("-1 1\n");
  });

  it("finds nothing in /proc and /sys that names the host, its files, other sandboxes or their disks", async () => {
    const other = await Sandbox.create(clientOf(platform));
    const dir = join(platform.dataDir, "node/sandboxes");
    const records = readdirSync(dir).map((name) => JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8")) as HostNames);
    const hostNames = [
      ...hostIds(),
      platform.dataDir,
      ...records.flatMap(({ area, containerId, slot }) => [area, containerId, slot.hostInterface]),
    ];
    // Another sandbox's process must be among them, or the search would prove nothing.
    expect(hostNames.length).toBeGreaterThan(8);
    await sandbox.files.write("/root/crawl.py", CRAWL);
    await sandbox.files.write("/root/names.json", JSON.stringify([...hostNames, "(deleted)"]));
    const { stdout } = await sandbox.commands.run("python3 /root/crawl.py", { user: "root", timeoutMs: 60_000 });
    const { looked, found } = JSON.parse(stdout) as { looked: number; found: string[] };
    expect(found).toEqual([]);
    expect(looked).toBeGreaterThan(1_000);
    for (const path of ["/sys/block", "/sys/class/block", "/sys/fs/ext4"]) {
      expect((await asRoot(`ls -A ${path}`)).stdout).toMatch(/^(exit 0|ls: cannot access.*\nexit 2)\n$/);
    }
    for (const path of ["/proc/diskstats", "/proc/partitions"]) expect((await asRoot(`cat ${path}`)).stdout).toBe("exit 0\n");
    await other.kill();
  });

  it("is an ordinary, unnamed user on the host, a different one per sandbox", async () => {
    const other = await Sandbox.create(clientOf(platform));
    await asRoot("touch /root/mine");
    const upperOf = ({ sandboxId }: Sandbox) => {
      const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8")) as {
        area: string;
      };
      return join(platform.dataDir, "node/areas", record.area, "fs/u");
    };
    const ids = [sandbox, other].map((one) => statSync(upperOf(one)).uid);
    expect(Math.min(...ids)).toBeGreaterThan(1_000_000_000);
    expect(Math.abs((ids[0] ?? 0) - (ids[1] ?? 0))).toBeGreaterThanOrEqual(65_536);
    expect(statSync(join(upperOf(sandbox), "root/mine")).uid).toBe(ids[0]);
    await other.kill();
  });

  it("sees no process of the host, and its processes run in their own cgroup under limits", async () => {
    const { stdout } = await asRoot("ls /proc | grep -c '^[0-9]'");
    expect(Number(stdout.split("\n")[0])).toBeLessThan(12);
    const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandbox.sandboxId, "sandbox.json"), "utf8"));
    const cgroups = readFileSync(`/proc/${record.process.pid}/cgroup`, "utf8");
    expect(cgroups).toContain(record.cgroupPath);
    const roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"].map((root) => join(root, record.cgroupPath));
    const limit = roots.flatMap((root) =>
      ["memory.max", "memory.limit_in_bytes"].flatMap((name) =>
        names(root).includes(name) ? [readFileSync(join(root, name), "utf8")] : [],
      ),
    );
    expect(Number(limit[0])).toBeLessThan(16 * 1024 ** 3);
  });

  it("cannot use up resources that all sandboxes share on the host", async () => {
    const count = "import ctypes; l = ctypes.CDLL(None); print(sum(1 for _ in range(1000) if l.inotify_init1(0) >= 0))";
    const { stdout } = await asRoot(`python3 -c '${count}'`);
    expect(Number(stdout.split("\n")[0])).toBeLessThanOrEqual(128);
    const other = await Sandbox.create(clientOf(platform));
    expect((await other.commands.run(`python3 -c '${count}'`)).stdout).not.toBe("0\n");
    await other.kill();
  });

  it("still gives its user a working sudo", async () => {
    expect((await sandbox.commands.run("sudo id -u")).stdout).toBe("0\n");
  });
});

function names(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
