// What `vm-check --reboot` does in its machine, before the reboot (`prepare FILE`) and after it (`verify FILE`). The platform's variables are in
// the environment, as `./skerry env --all` prints them.

import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "e2b";

/** A program whose memory is all that it has: a number that it drew, and how often it has counted. */
const WITNESS = `
import os, random, time
token, count = random.getrandbits(64), 0
while True:
    count += 1
    with open("/tmp/told.new", "w") as f: f.write(f"{os.getpid()} {token} {count}")
    os.replace("/tmp/told.new", "/tmp/told")
    time.sleep(1)`;
const LIFE_MS = 8 * 3_600_000;
/** Emulated machines are slow. */
const requestTimeoutMs = 600_000;

interface Before {
  readonly running: string;
  readonly paused: string;
  /** What the witness of each said. */
  readonly told: Readonly<Record<string, string>>;
  readonly endAt: string;
  readonly at: number;
}

const [what, file = ""] = process.argv.slice(2);
if (what === "prepare") await prepare();
else if (what === "verify") await verify(JSON.parse(readFileSync(file, "utf8")) as Before);
else throw new Error("prepare or verify");

async function start(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs: LIFE_MS, requestTimeoutMs });
  await sandbox.files.write("/tmp/witness.py", WITNESS, { requestTimeoutMs });
  const witness = await sandbox.commands.run("python3 /tmp/witness.py", { background: true, timeoutMs: 0, requestTimeoutMs });
  // Its output would keep this program from ending.
  await witness.disconnect();
  await told(sandbox, () => true);
  return sandbox;
}

/** What the witness says, once it is as expected. */
async function told(sandbox: Sandbox, isExpected: (text: string) => boolean): Promise<string> {
  for (let tries = 0; tries < 300; tries += 1) {
    const text = await sandbox.files.read("/tmp/told", { requestTimeoutMs }).catch(() => "");
    if (text !== "" && isExpected(text)) return text;
    await sleep(1_000);
  }
  throw new Error(`the witness of ${sandbox.sandboxId} does not go on`);
}

async function prepare(): Promise<void> {
  const [running, paused] = [await start(), await start()];
  const ofPaused = await told(paused, () => true);
  await paused.pause({ requestTimeoutMs });
  const { endAt } = await running.getInfo({ requestTimeoutMs });
  const before: Before = {
    running: running.sandboxId,
    paused: paused.sandboxId,
    told: { [running.sandboxId]: await told(running, () => true), [paused.sandboxId]: ofPaused },
    endAt: endAt.toISOString(),
    at: Date.now(),
  };
  writeFileSync(file, JSON.stringify(before));
  console.log("before the reboot:", before);
}

async function verify(before: Before): Promise<void> {
  const seen = new Map<string, string>();
  for (const pages = Sandbox.list({ requestTimeoutMs }); pages.hasNext; ) {
    for (const { sandboxId, state } of await pages.nextItems()) seen.set(sandboxId, state);
  }
  check("the sandbox that ran runs again", seen.get(before.running), "running");
  check("the paused one is paused", seen.get(before.paused), "paused");
  const info = await Sandbox.getInfo(before.running, { requestTimeoutMs });
  // The time of the reboot does not count: it has what it had left.
  const [left, leftBefore] = [info.endAt.getTime() - Date.now(), new Date(before.endAt).getTime() - before.at];
  if (left > leftBefore || left < leftBefore - 3_600_000) throw new Error(`it has ${left} ms left, and had ${leftBefore} ms`);
  for (const [id, toldBefore] of Object.entries(before.told)) {
    const [pid, token, count] = toldBefore.split(" ");
    const sandbox = await Sandbox.connect(id, { requestTimeoutMs });
    const now = await told(sandbox, (text) => Number(text.split(" ")[2]) > Number(count));
    console.log(id, "after the reboot:", now);
    check("its program has its memory", now.split(" ").slice(0, 2), [pid, token]);
  }
}

function check(what: string, is: unknown, expected: unknown): void {
  if (JSON.stringify(is) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(is)} in place of ${JSON.stringify(expected)}`);
  console.log("ok:", what);
}
