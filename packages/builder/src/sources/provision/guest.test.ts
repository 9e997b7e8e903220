import { once } from "node:events";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { finish, inspect } from "./guest.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "skerry-guest-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const at = (path: string) => join(root, path);
const read = (path: string) => readFileSync(at(path), "utf8");

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
  chmodSync(at(path), mode);
}

const finishPlain = (imagePath = "") => finish(root, { task: "finish", imagePath });

test("says which programs an image has, and what it calls itself", () => {
  put("usr/bin/curl", "", 0o755);
  put("usr/bin/git", "");
  put("usr/lib/os-release", "ID=alpine\n");
  put("etc/ssl/cert.pem", "");
  const programs = ["/bin/bash", "curl", "git", "ca-certificates", "sudo"];
  expect(inspect(root, { task: "inspect", programs })).toEqual({ osRelease: "ID=alpine\n", present: ["curl", "ca-certificates"] });
});

describe("the user", () => {
  test("is added to an image that knows no users", () => {
    finishPlain();
    expect(read("etc/passwd")).toBe("root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n");
    expect(read("etc/group")).toBe("root:x:0:\nuser:x:1000:\n");
    expect(lstatSync(at("home/user"))).toMatchObject({ uid: 1000, gid: 1000 });
    expect(lstatSync(at("home/user/.bashrc"))).toMatchObject({ uid: 1000, gid: 1000 });
  });

  test("takes the first id that no user and no group has", () => {
    put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash");
    put("etc/group", "root:x:0:\nubuntu:x:1000:\nteam:x:1001:\n");
    put("etc/shadow", "root:*:1:0:99999:7:::", 0o640);
    finishPlain();
    expect(read("etc/passwd")).toContain("\nuser:x:1002:1002::/home/user:/bin/bash\n");
    expect(read("etc/shadow")).toBe("root:*:1:0:99999:7:::\nuser:*:19723:0:99999:7:::\n");
    expect(lstatSync(at("etc/shadow")).mode & 0o777).toBe(0o640);
  });

  test("stays as the image has it", () => {
    put("etc/passwd", "user:x:1234:55:Somebody:/srv/me:/bin/sh\n");
    finishPlain();
    expect(read("etc/passwd")).toBe("user:x:1234:55:Somebody:/srv/me:/bin/sh\n");
    expect(lstatSync(at("srv/me"))).toMatchObject({ uid: 1234, gid: 55 });
  });

  test("gets the files of a new home, and keeps those that it has", () => {
    put("etc/skel/.bashrc", "of the distribution");
    put("etc/skel/.config/settings", "1");
    put("home/user/.profile", "its own");
    finishPlain();
    expect([read("home/user/.bashrc"), read("home/user/.profile")]).toEqual(["of the distribution", "its own"]);
    expect(lstatSync(at("home/user/.config/settings"))).toMatchObject({ uid: 1000 });
    expect(lstatSync(at("home/user/.profile"))).toMatchObject({ uid: 0 });
  });

  test("is root without a password where there is sudo", () => {
    put("usr/bin/sudo", "", 0o4755);
    put("etc/group", "root:x:0:\nsudo:x:27:other\nwheel:x:10:\n");
    put("etc/sudoers", "root ALL=(ALL:ALL) ALL", 0o440);
    finishPlain();
    finishPlain();
    expect(read("etc/group")).toContain("sudo:x:27:other,user\nwheel:x:10:user\n");
    expect(read("etc/sudoers")).toBe("root ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n");
    expect(lstatSync(at("etc/sudoers.d/user")).mode & 0o777).toBe(0o440);
  });
});

describe("the shell", () => {
  const tools = { dir: "/.tools", applets: ["sh", "ls"] };
  beforeEach(() => {
    put(".tools/bash", "static bash", 0o755);
    put(".tools/busybox", "static busybox", 0o755);
  });

  test("is brought to an image without any", () => {
    expect(finish(root, { task: "finish", imagePath: "", tools }).provided).toEqual([
      "bash",
      "busybox (2 programs)",
      "ss (listening sockets only)",
    ]);
    expect([read("bin/bash"), read("bin/busybox"), readlinkSync(at("bin/sh"))]).toEqual(["static bash", "static busybox", "/bin/busybox"]);
  });

  test("comes with an ss for ready commands that wait for a port", async () => {
    finish(root, { task: "finish", imagePath: "", tools });
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const listeners = async () => (await runCommand("bash", [at("usr/local/bin/ss"), "-Htuln", "sport", "=", `:${port}`])).stdout;
    expect(await listeners()).toBe(`tcp LISTEN 0 0 *:${port} *:*\n`);
    server.close();
    await once(server, "close");
    expect(await listeners()).toBe("");
  });

  test("is brought where /bin is a link to a directory that is not there", () => {
    symlinkSync("usr/bin", at("bin"));
    finish(root, { task: "finish", imagePath: "", tools });
    expect(read("usr/bin/bash")).toBe("static bash");
  });

  test("takes nothing from programs that the image has", () => {
    put("usr/bin/ls", "its own", 0o755);
    put("usr/local/bin/bash", "its own", 0o755);
    expect(finish(root, { task: "finish", imagePath: "", tools }).provided).toEqual([]);
    expect(readlinkSync(at("bin/bash"))).toBe("/usr/local/bin/bash");
  });
});

describe.each([
  ["bash", ["bash", "--norc", "-c"]],
  ["dash", ["dash", "-c"]],
  ["busybox", ["busybox", "sh", "-c"]],
] as const)("a login in %s", (_name, [program, ...flags]) => {
  const SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const pathIn = async (path: string) => {
    const { stdout } = await runCommand(program, [...flags, `. ${at("etc/profile")}; echo "$PATH"; set`], { env: { PATH: path } });
    expect(stdout).not.toMatch(/^skerry/m);
    return stdout.split("\n")[0];
  };

  test("keeps the PATH that it was given, before that of the profile", async () => {
    put("etc/profile", "PATH=/usr/bin:/usr/games\nexport PATH\n");
    finishPlain();
    expect(await pathIn(SYSTEM)).toBe(`${SYSTEM}:/usr/games`);
    expect(await pathIn(`/opt/mine:${SYSTEM}`)).toBe(`/opt/mine:${SYSTEM}:/usr/games`);
  });

  test("finds the image's programs first, unless the command says otherwise", async () => {
    finishPlain(`/opt/venv/bin:${SYSTEM}`);
    expect(await pathIn(SYSTEM)).toBe(`/opt/venv/bin:${SYSTEM}`);
    expect(await pathIn(`/mine:${SYSTEM}`)).toBe(`/mine:${SYSTEM}:/opt/venv/bin`);
  });

  test("runs nothing of a PATH that is no list of directories", async () => {
    finishPlain('/a:"; touch /tmp/skerry-owned; "');
    expect(await pathIn(SYSTEM)).toBe(SYSTEM);
  });
});

test("the profile of Debian starts no program to find out who it is", () => {
  put("etc/profile", 'if [ "$(id -u)" -eq 0 ]; then\n  PATH=/sbin\nfi\n');
  finishPlain();
  expect(read("etc/profile")).toContain(`if [ "\${EUID:-$(id -u)}" -eq 0 ]; then`);
});
