import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Generation, isGeneration } from "./generation.ts";
import { findHooks } from "./hooks.ts";

const FIRST = "0".repeat(31).concat("1");
const SECOND = "0".repeat(31).concat("2");

let dir: string;
let file: string;
let hooksDir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "skerry-generation-"));
  file = join(dir, "run/skerry/generation");
  hooksDir = join(dir, "hooks");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function addHook(name: string, text: string, mode = 0o755): string {
  mkdirSync(hooksDir, { recursive: true });
  const path = join(hooksDir, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function start(options: { signalAll?: (signal: string) => void; runPrograms?: (paths: readonly string[]) => Promise<void> } = {}) {
  const done: unknown[] = [];
  const log: string[] = [];
  const generation = new Generation({
    file,
    hooksDir,
    signalAll: (signal) => {
      options.signalAll?.(signal);
      done.push([signal, readFileSync(file, "utf8")]);
    },
    runPrograms: async (paths, name) => {
      done.push([...paths.map((path) => path.slice(hooksDir.length + 1)), name]);
      await options.runPrograms?.(paths);
    },
    log: (message) => log.push(message),
  });
  return { generation, done, log };
}

/** Calls `become` as the agent does, and then the returned function, which the agent calls after its response. */
const become = (generation: Generation, name: string) => generation.become(name)?.();

describe("a new generation", () => {
  it("is in the file, for everybody to read, before anybody is told", async () => {
    addHook("50-all.signal", "URG\n", 0o644);
    addHook("20-second", "");
    addHook("10-first", "");
    const { generation, done, log } = start();
    become(generation, FIRST);
    expect(readFileSync(file, "utf8")).toBe(`${FIRST}\n`);
    expect([statSync(file).mode & 0o777, statSync(join(dir, "run/skerry")).mode & 0o777]).toEqual([0o644, 0o755]);
    expect(generation.isBusy).toBe(true);
    await generation.settled();
    expect(generation.isBusy).toBe(false);
    expect(done).toEqual([
      ["SIGURG", `${FIRST}\n`],
      ["10-first", "20-second", FIRST],
    ]);
    expect(log).toEqual([]);
  });

  it("replaces the file, whose readers see all of one or of the other", () => {
    const { generation } = start();
    become(generation, FIRST);
    const before = statSync(file).ino;
    become(generation, SECOND);
    expect(readFileSync(file, "utf8")).toBe(`${SECOND}\n`);
    expect(statSync(file).ino).not.toBe(before);
    expect(readdirSync(join(dir, "run/skerry"))).toEqual(["generation"]);
  });

  it("is one that is not the one before: in memory after a restore, in the file after a boot", () => {
    addHook("all.signal", "URG");
    const first = start();
    become(first.generation, FIRST);
    become(first.generation, FIRST);
    expect(first.done).toHaveLength(1);
    const booted = start();
    become(booted.generation, FIRST);
    expect(booted.done).toEqual([]);
    become(booted.generation, SECOND);
    expect(booted.done).toHaveLength(1);
  });

  it("waits with its programs for those of the one before", async () => {
    addHook("program", "");
    const gate = Promise.withResolvers<void>();
    const { generation, done } = start({ runPrograms: () => gate.promise });
    become(generation, FIRST);
    become(generation, SECOND);
    await Promise.resolve();
    expect(done).toEqual([["program", FIRST]]);
    gate.resolve();
    await generation.settled();
    expect(done).toEqual([
      ["program", FIRST],
      ["program", SECOND],
    ]);
  });

  it("leaves no former one where there is no room for its own", () => {
    const { generation, log } = start();
    become(generation, FIRST);
    mkdirSync(`${file}.next`);
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", `${file}.next`]);
    try {
      become(generation, SECOND);
    } finally {
      execFileSync("umount", ["--lazy", `${file}.next`]);
    }
    expect([existsSync(file), log]).toEqual([false, ["could not write the generation"]]);
  });

  it("is told although a part of it fails", async () => {
    addHook("all.signal", "URG");
    addHook("program", "");
    mkdirSync(join(dir, "run"));
    writeFileSync(join(dir, "run/skerry"), "in the way");
    const fails = (): never => {
      throw new Error("it fails");
    };
    const { generation, log } = start({ signalAll: fails, runPrograms: () => Promise.reject(new Error("it fails")) });
    become(generation, FIRST);
    await generation.settled();
    expect(log).toEqual([
      "could not read the generation",
      "could not make the folder of the generation",
      "could not write the generation",
      "could not remove the former generation",
      "could not send SIGURG",
      "the agent could not run the hooks",
    ]);
  });

  it.each(["a FIFO", "a folder", "a link"])("is not held up by %s in the place of the file", (what) => {
    mkdirSync(join(dir, "run/skerry"), { recursive: true });
    const outside = join(dir, "outside");
    writeFileSync(outside, "as it was");
    for (const path of [file, `${file}.next`]) {
      if (what === "a FIFO") execFileSync("mkfifo", [path]);
      else if (what === "a folder") mkdirSync(path);
      else symlinkSync(outside, path);
    }
    const { generation } = start();
    become(generation, FIRST);
    expect(readFileSync(outside, "utf8")).toBe("as it was");
    if (what !== "a folder") expect(readFileSync(file, "utf8")).toBe(`${FIRST}\n`);
  });
});

it("is 32 hex digits", () => {
  expect(isGeneration(FIRST)).toBe(true);
  for (const other of ["", FIRST.slice(1), `${FIRST}0`, `${FIRST}\n`, `../${FIRST.slice(3)}`, FIRST.replace("1", "F")])
    expect([other, isGeneration(other)]).toEqual([other, false]);
});

it("has its first hooks found ahead, and those of later ones when they are needed", () => {
  addHook("all.signal", "URG");
  const { generation, done } = start();
  generation.prepare();
  rmSync(hooksDir, { recursive: true });
  become(generation, FIRST);
  expect(done).toEqual([["SIGURG", `${FIRST}\n`]]);
  become(generation, SECOND);
  expect(done).toHaveLength(1);
  addHook("all.signal", "WINCH");
  become(generation, FIRST);
  expect(done).toHaveLength(2);
});

it("keeps nobody waiting where nobody has been, but for programs", () => {
  addHook("all.signal", "URG");
  const { generation, done } = start();
  const announce = generation.become(FIRST);
  expect([existsSync(file), done]).toEqual([false, []]);
  announce?.();
  expect(done).toEqual([["SIGURG", `${FIRST}\n`]]);
  expect(generation.become(SECOND)).toBeUndefined();
  expect(readFileSync(file, "utf8")).toBe(`${SECOND}\n`);
  rmSync(file);
  addHook("program", "");
  const other = start();
  expect(other.generation.become(FIRST)).toBeUndefined();
  expect(other.generation.isBusy).toBe(true);
});

describe("hooks", () => {
  it("are none where there is no folder, or something else in its place", () => {
    const none = { signals: [], programs: [], problems: [] };
    expect(findHooks(hooksDir)).toEqual(none);
    writeFileSync(hooksDir, "");
    expect(findHooks(hooksDir)).toEqual(none);
  });

  it("are signals that end nobody, each once", () => {
    for (const [name, text] of [
      ["1.signal", "URG"],
      ["2.signal", "SIGURG\n"],
      ["3.signal", "  WINCH  \n"],
    ] as const)
      addHook(name, text, 0o644);
    expect(findHooks(hooksDir)).toMatchObject({ signals: ["SIGURG", "SIGWINCH"], problems: [] });
    for (const text of ["KILL", "TERM", "USR1", "", "URG URG", "0", "x".repeat(100_000)]) addHook("4.signal", text);
    const { signals, problems } = findHooks(hooksDir);
    expect(signals).toEqual(["SIGURG", "SIGWINCH"]);
    expect(problems).toEqual([expect.stringMatching(/4\.signal names none of/)]);
  });

  it("are programs of root alone", () => {
    const mine = addHook("good", "");
    addHook("not-executable", "", 0o644);
    addHook("others-write", "", 0o757);
    addHook("group-writes.signal", "URG", 0o664);
    execFileSync("chown", ["1000", addHook("anothers", "")]);
    mkdirSync(join(hooksDir, "folder"));
    symlinkSync("nowhere", join(hooksDir, "dangling"));
    execFileSync("mkfifo", [join(hooksDir, "fifo.signal")]);
    for (const ignored of [".hidden", "good~", "good.bak", "good.dpkg-old", "a b"]) addHook(ignored, "");
    const { signals, programs, problems } = findHooks(hooksDir);
    expect({ signals, programs }).toEqual({ signals: [], programs: [mine] });
    expect(problems.map((problem) => problem.replace(`${hooksDir}/`, "")).sort()).toEqual([
      "anothers can be changed by others than root",
      "dangling is not a file",
      "fifo.signal is not a file",
      "folder is not a file",
      "group-writes.signal can be changed by others than root",
      "not-executable is not executable",
      "others-write can be changed by others than root",
    ]);
  });

  it("are none of a folder that others may write to", () => {
    addHook("program", "");
    chmodSync(hooksDir, 0o777);
    expect(findHooks(hooksDir)).toMatchObject({ programs: [], problems: [expect.stringContaining("can be changed by others than root")] });
    expect(existsSync(hooksDir)).toBe(true);
  });

  it("are counted", () => {
    for (let index = 0; index < 105; index += 1) addHook(`p${index}`, "");
    const { programs, problems } = findHooks(hooksDir);
    expect(programs).toHaveLength(100);
    expect(problems).toHaveLength(1);
  });
});
