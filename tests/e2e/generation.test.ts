// How a sandbox learns that it was cloned: the generation file, and the hooks of its image (docs/lifecycle.md).

import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const FILE = "/run/skerry/generation";
const HOOKS = "/etc/skerry/generation.d";
const NOTES = "/root/notes";

const asRoot = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command, { user: "root" })).stdout;
const generationOf = async (sandbox: Sandbox) => (await sandbox.files.read(FILE)).trim();

/** The lines that hooks have written. */
const notesOf = async (sandbox: Sandbox) => (await asRoot(sandbox, `cat ${NOTES} 2>/dev/null || true`)).split("\n").filter(Boolean);

async function addHook(sandbox: Sandbox, name: string, script: string): Promise<void> {
  await sandbox.files.write(`${HOOKS}/${name}`, `#!/bin/sh\n${script}\n`, { user: "root" });
  await asRoot(sandbox, `chmod 755 ${HOOKS}/${name}`);
}

async function fork(platform: SharedPlatform, sandbox: Sandbox): Promise<Sandbox> {
  const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 3_600 } });
  const [made] = body as { sandbox: { sandboxID: string } }[];
  return Sandbox.connect(made?.sandbox.sandboxID ?? "", clientOf(platform));
}

describe.each(runtimesFor("what a clone is told"))("on %s", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it("each sandbox has its own generation, which a pause keeps and ordinary users cannot change", async () => {
    const [one, other] = [await Sandbox.create(clientOf(platform)), await Sandbox.create(clientOf(platform))];
    const before = await generationOf(one);
    expect(before).toMatch(/^[0-9a-f]{32}$/);
    expect(await generationOf(other)).not.toBe(before);
    for (const command of [`echo x > ${FILE}`, `mv ${FILE} /tmp`, `touch ${HOOKS}/mine`]) {
      await expect(one.commands.run(command)).rejects.toThrow("exit status 1");
    }
    await addHook(one, "note", `echo "$SKERRY_GENERATION" >>${NOTES}`);
    for (const memory of [true, false]) {
      await callApi(platform, `/sandboxes/${one.sandboxId}/pause`, { body: { memory } });
      await Sandbox.connect(one.sandboxId, clientOf(platform));
      expect(await generationOf(one)).toBe(before);
    }
    expect(await notesOf(one)).toEqual([]);
    for (const sandbox of [one, other]) await sandbox.kill();
  });

  it("hooks have ended when a create from a snapshot or a fork is answered", async () => {
    const source = await Sandbox.create(clientOf(platform));
    await addHook(source, "20-note", `echo "second $SKERRY_GENERATION $E2B_SANDBOX_ID $(id -u)" >>${NOTES}`);
    await addHook(source, "10-note", `sleep 0.3; echo "first $(cat ${FILE})" >>${NOTES}; echo to the log; exit 3`);
    const first = await generationOf(source);
    const { snapshotId } = await source.createSnapshot();
    const clone = await Sandbox.create(snapshotId, clientOf(platform));
    const ownNotes = async (sandbox: Sandbox) => {
      const own = await generationOf(sandbox);
      expect((await notesOf(sandbox)).slice(-2)).toEqual([`first ${own}`, `second ${own} ${sandbox.sandboxId} 0`]);
      return own;
    };
    const generations = [first, await ownNotes(clone)];
    expect(await asRoot(clone, `cat ${FILE}.log; stat -c %a ${FILE}.log`)).toBe(
      "to the log\n10-note: exit code 3\n20-note: exit code 0\n600\n",
    );
    // The source of a snapshot gets a new generation too, because others have its memory. No client waits for its hooks.
    const second = await generationOf(source);
    expect(second === first).toBe(!keepsMemory);
    if (keepsMemory) await waitUntil("the source's hooks have run", async () => (await notesOf(source)).length === 2);
    else expect(await notesOf(source)).toEqual([]);
    const forked = await fork(platform, clone);
    generations.push(await ownNotes(forked), ...(keepsMemory ? [second, await generationOf(clone)] : []));
    expect(new Set(generations).size).toBe(generations.length);
    for (const sandbox of [source, clone, forked]) await sandbox.kill();
    await Sandbox.deleteSnapshot(snapshotId, clientOf(platform));
  });

  it("hooks that hang, leave processes behind or cannot run do not prevent a create", async () => {
    const source = await Sandbox.create(clientOf(platform));
    await addHook(source, "10-hangs", "trap '' TERM; sleep 1000 & sleep 1000");
    await addHook(source, "20-leaves", "setsid sleep 1234 & exit 0");
    await source.files.write(`${HOOKS}/30-broken`, "#!/no/such/interpreter\n", { user: "root" });
    await asRoot(source, `chmod 755 ${HOOKS}/30-broken`);
    await addHook(source, "40-last", `touch ${NOTES}`);
    const { snapshotId } = await source.createSnapshot();
    const clone = await Sandbox.create(snapshotId, { ...clientOf(platform), requestTimeoutMs: 60_000 });
    expect((await asRoot(clone, `cat ${FILE}.log`)).split("\n")).toEqual([
      "10-hangs: killed: it took too long",
      "20-leaves: exit code 0",
      "30-broken: not run: posix_spawn: ENOENT",
      "40-last: exit code 0",
      "",
    ]);
    expect(await asRoot(clone, "pgrep -c -f '[s]leep 1000' || true")).toBe("0\n");
    expect(await asRoot(clone, "pgrep -c -f '[s]leep 1234' || true")).toBe("1\n");
    for (const sandbox of [source, clone]) await sandbox.kill();
    await Sandbox.deleteSnapshot(snapshotId, clientOf(platform));
  });
});

it("every process that continues gets the signal that the image names, once per generation", async () => {
  await using platform = await sharedPlatform("gvisor");
  const source = await Sandbox.create(clientOf(platform));
  const count = `
import signal, time
count = 0
def handle(*_):
  global count
  count += 1
  open("count", "w").write(str(count))
signal.signal(signal.SIGURG, handle)
open("count", "w").write("0")
while True: time.sleep(1000)
`;
  await source.files.write("count.py", count);
  await source.commands.run("python3 count.py", { background: true, timeoutMs: 0 });
  const counted = (sandbox: Sandbox) => sandbox.commands.run("cat count 2>/dev/null || true").then(({ stdout }) => stdout);
  await waitUntil("it counts", async () => (await counted(source)) === "0");
  const forked = await fork(platform, source);
  for (const sandbox of [source, forked]) await waitUntil("it was told", async () => (await counted(sandbox)) === "1");
  await forked.pause();
  await Sandbox.connect(forked.sandboxId, clientOf(platform));
  const again = await fork(platform, forked);
  await waitUntil("it was told again", async () => (await counted(again)) === "2");
  for (const sandbox of [source, forked, again]) await sandbox.kill();
});
