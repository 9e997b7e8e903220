import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostArch, koffiAddon } from "@skerry/agent/assemble";
import { afterAll, describe, expect, it } from "vitest";
import { BASE_FILES } from "./recipe.ts";

const ADDON = "/usr/local/lib/skerry/koffi.node";

const dir = mkdtempSync(join(tmpdir(), "skerry-reseed-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A file of the template, with the addon where this machine has it. */
function place(name: string, addon: string): string {
  const path = join(dir, name);
  writeFileSync(path, (BASE_FILES[`usr/local/lib/skerry/${name}`] ?? "").replace(ADDON, addon));
  return path;
}

describe("Node.js", () => {
  /** What a program prints that is loaded with the preload; the signal comes with `await signal()`. */
  function run(text: string, addon = koffiAddon(hostArch())): { stdout: string; stderr: string } {
    // The timer keeps the program, which listening for a signal does not.
    const signal = `const signal = async () => {
      const timer = setInterval(() => {}, 1_000);
      await new Promise((done) => { process.once("SIGURG", done); process.kill(process.pid, "SIGURG"); });
      clearInterval(timer);
    };`;
    const args = ["--require", place("reseed.cjs", addon), "--input-type=module", "--eval", `${signal}\n${text}`];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 60_000, env: {} });
    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
    return { stdout: stdout.trim(), stderr };
  }

  it("ends when its program has nothing left to do", () => {
    expect(run("console.log('over'); setTimeout(() => {}, 1);")).toEqual({ stdout: "over", stderr: "" });
  });

  it("keeps its own generator until the signal comes, and has an even one then", () => {
    const { stdout } = run(`
      const before = Math.random;
      await new Promise((done) => setTimeout(done, 1));
      if (Math.random !== before) throw new Error("replaced");
      await signal();
      const first = Math.random;
      const drawn = Array.from({ length: 200_000 }, () => Math.random());
      const tenths = Array.from({ length: 10 }, (_, tenth) => drawn.filter((one) => Math.floor(one * 10) === tenth).length);
      await signal();
      const property = Object.getOwnPropertyDescriptor(Math, "random");
      console.log(JSON.stringify({
        different: new Set([before, first, Math.random]).size,
        inRange: drawn.every((one) => one >= 0 && one < 1),
        even: tenths.every((count) => count > 19_000 && count < 21_000),
        distinct: new Set(drawn).size > 199_000,
        name: Math.random.name, length: Math.random.length, enumerable: property.enumerable, writable: property.writable,
      }));`);
    expect(JSON.parse(stdout)).toEqual({
      different: 3,
      inRange: true,
      even: true,
      distinct: true,
      name: "random",
      length: 0,
      enumerable: false,
      writable: true,
    });
  });

  it("leaves alone what a program has put in the place of Math.random", () => {
    expect(run("const mine = () => 4; Math.random = mine; await signal(); console.log(Math.random === mine);").stdout).toBe("true");
  });

  it("says when OpenSSL can't be reached, and goes on", () => {
    const { stdout, stderr } = run(
      "const before = Math.random; await signal(); console.log(Math.random !== before);",
      "/no/such/addon.node",
    );
    expect(stdout).toBe("true");
    expect(stderr).toContain("SkerryWarning: OpenSSL has the random numbers of other copies of this sandbox");
  });
});

describe("Python", () => {
  const run = (text: string): string => {
    const file = place("sitecustomize.py", "");
    const args = ["-S", "-c", `exec(open(${JSON.stringify(file)}).read())\nimport os, signal\n${text}`];
    return execFileSync("python3", args, { encoding: "utf8", timeout: 60_000 }).trim();
  };
  const SIGNAL = "os.kill(os.getpid(), signal.SIGURG)";

  it("reseeds what is loaded, and loads nothing else", () => {
    const loaded = "import sys; print(sorted({'random', '_ssl', 'ssl'} & set(sys.modules)))";
    expect(run(`${SIGNAL}\n${loaded}`)).toBe("[]");
    const drawn = `
import random
random.seed(1)
first = random.random()
random.seed(1)
${SIGNAL}
print(random.random() != first)`;
    expect(run(drawn)).toBe("True");
    expect(run(`import _hashlib\n${SIGNAL}\n${loaded}`)).toBe("['_ssl']");
  });

  it("can be ignored, and gives way to a handler of the program's own", () => {
    const drawn = (handler: string) => `
import random
signal.signal(signal.SIGURG, ${handler})
random.seed(1)
first = random.random()
random.seed(1)
${SIGNAL}
print(random.random() == first)`;
    expect(run(drawn("signal.SIG_IGN"))).toBe("True");
    expect(run(drawn("lambda *_: None"))).toBe("True");
  });
});

it.each(["sh", "bash"])("%s adds the preload once to what NODE_OPTIONS has", (shell) => {
  const file = join(dir, "profile");
  const profile = BASE_FILES["etc/profile"] ?? "";
  writeFileSync(file, profile.slice(profile.indexOf('case " ${NODE_OPTIONS')));
  const preload = "--require=/usr/local/lib/skerry/reseed.cjs";
  const after = (before: string) =>
    execFileSync(shell, ["-euc", `${before}. ${file}; . ${file}; sh -c 'echo "$NODE_OPTIONS"'`], {
      encoding: "utf8",
      env: {},
      stdio: ["ignore", "pipe", "inherit"],
    }).trim();
  expect(after("")).toBe(preload);
  expect(after("export NODE_OPTIONS=--no-warnings; ")).toBe(`${preload} --no-warnings`);
});
