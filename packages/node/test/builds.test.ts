import { Readable } from "node:stream";
import type { BuildCommand, BuildSandbox } from "@skerry/builder";
import type { LayerDigest } from "@skerry/layers";
import { runtimesFor } from "@skerry/testkit/depth";
import { tarArchive } from "@skerry/testkit/images/tar-archive";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { areasInUse, type NodeUnderTest, startNode } from "./node-under-test.ts";

describe.each(runtimesFor("a node's builds"))("sandboxes of builds on %s", (runtime) => {
  let under: NodeUnderTest;
  beforeAll(async () => {
    under = await startNode(runtime);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  const { signal } = new AbortController();
  const start = (layers: readonly LayerDigest[] = [under.layer as LayerDigest], memoryMb = 256): Promise<BuildSandbox> =>
    under.node.buildHost.startSandbox({
      buildId: "b",
      templateId: "t",
      layers,
      size: { cpuCount: 1, memoryMb, diskSizeMb: 64 },
      runtime: "",
      signal,
    });
  const run = async (sandbox: BuildSandbox, command: string, options: Partial<BuildCommand> = {}) => {
    const lines: string[] = [];
    const onLine = (line: string, stream: string) => void lines.push(`${stream}: ${line}`);
    const end = await sandbox.run({
      argv: ["/bin/sh", "-c", command],
      user: "root",
      workdir: "",
      env: {},
      timeoutMs: 60_000,
      signal,
      onLine,
      ...options,
    });
    return { ...end, lines };
  };
  const settled = () => expect(areasInUse(under)).toEqual([]);

  it("run commands as a user with a directory and variables, and tell how they ended", async () => {
    const sandbox = await start();
    const about = await run(sandbox, "id -un; pwd; echo $FOO; printf no-end >&2", { user: "user", env: { FOO: "a b" } });
    expect(about).toMatchObject({ exitCode: 0, status: "exit status 0" });
    expect(about.lines.sort()).toEqual(["stderr: no-end", "stdout: /home/user", "stdout: a b", "stdout: user"]);
    expect((await run(sandbox, "pwd", { workdir: "/bin" })).lines).toEqual(["stdout: /bin"]);
    expect(await run(sandbox, "exit 2")).toMatchObject({ exitCode: 2, status: "exit status 2" });
    expect(await run(sandbox, "kill -9 $$")).toMatchObject({ status: "signal: killed" });
    await expect(run(sandbox, "true", { user: "nobody-here" })).rejects.toMatchObject({
      code: "build_command_refused",
      message: "unauthenticated: invalid username: 'nobody-here'",
    });
    await expect(run(sandbox, "true", { workdir: "/nowhere" })).rejects.toMatchObject({
      code: "build_command_refused",
      message: "invalid_argument: cwd '/nowhere' does not exist",
    });
    expect(await run(sandbox, "sleep 60", { timeoutMs: 1_000 })).toMatchObject({ status: "timed out after 1s" });
    expect((await under.client.listSandboxes({})).sandboxes).toEqual([]);
    await sandbox.discard();
    settled();
  });

  it("leave what they wrote as a layer that the next one lies on", async () => {
    const first = await start();
    await run(first, "echo one > /home/new; echo changed > /home/linked; rm /etc/group; rm -r /root; mkdir /root; chown user /home/new");
    const one = await first.commit("build-one");
    if (!one) throw new Error("no layer");
    const second = await start([under.layer as LayerDigest, one]);
    const seen = await run(
      second,
      "cat /home/new /home/linked-too; ls /etc; ls -a /root; ls -l /home/new | grep -c user; cat /etc/hosts | wc -l",
    );
    expect(seen.lines.map((line) => line.slice("stdout: ".length))).toEqual([
      "one",
      "changed",
      "hostname",
      "hosts",
      "passwd",
      "resolv.conf",
      ".",
      "..",
      "1",
      "3",
    ]);
    expect(await second.commit("build-two")).toBeUndefined();
    expect(under.config.layers.held()).toContain(one);
    under.config.layers.release("build-one");
    settled();
  });

  it("get the files of an archive, and refuse what is none", async () => {
    const sandbox = await start();
    const copy = (archive: AsyncIterable<Uint8Array>) =>
      sandbox.copy({
        archive,
        source: "a.txt",
        destination: "to/",
        workdir: "",
        user: "user",
        owner: "",
        mode: "0640",
        timeoutMs: 60_000,
        signal,
      });
    const tarOf = (path: string) => Readable.from([tarArchive([{ path, content: "from outside" }])]);
    expect(await copy(tarOf("a.txt"))).toEqual({ entries: 1, warnings: [] });
    const placed = await run(sandbox, "cat to/a.txt; echo; stat -c '%U %a' to/a.txt", { user: "user" });
    expect(placed.lines).toEqual(["stdout: from outside", "stdout: user 640"]);
    await expect(copy(Readable.from([Buffer.alloc(10_000, "x")]))).rejects.toMatchObject({ code: "build_copy_failed" });
    await expect(copy(tarOf("b.txt")), "it is not in the archive").rejects.toThrow("failed to move files in sandbox");
    const broken = async function* () {
      yield tarArchive([{ path: "a.txt", content: "x".repeat(10_000) }]).subarray(0, 5_000);
      throw new Error("the blob is gone");
    };
    await expect(copy(broken())).rejects.toThrow("the blob is gone");
    expect((await run(sandbox, "echo still here")).lines).toEqual(["stdout: still here"]);
    await sandbox.discard();
    settled();
  });

  it("start from the disk of a snapshot, which may be deleted meanwhile", async () => {
    const [sandboxId, imageId] = ["i".repeat(20), "m".repeat(20)];
    const first = await start();
    await run(first, "rm /etc/group; echo one > /home/new");
    const layer = await first.commit("build-first");
    await under.client.createSandbox({ spec: { ...under.spec(sandboxId), layers: [under.layer, layer ?? ""] } });
    await under.client.snapshotSandbox({ sandboxId, imageId, memory: false });
    await under.client.killSandbox({ sandboxId });
    const { buildHost } = under.node;
    const layers = await buildHost.layersOfImage(imageId, { holder: "build-second", signal });
    expect(layers.slice(0, 2)).toEqual([under.layer, layer]);
    expect([...under.config.layers.held()]).toEqual(expect.arrayContaining([...layers]));
    await under.client.deleteImage({ imageId });
    const second = await start(layers);
    expect((await run(second, "cat /home/new; ls /etc/group")).lines[0]).toBe("stdout: one");
    await second.discard();
    await expect(buildHost.layersOfImage(imageId, { holder: "build-second", signal })).rejects.toMatchObject({ code: "image_missing" });
    for (const holder of ["build-first", "build-second"]) under.config.layers.release(holder);
    settled();
  });

  it("keep a step that fills its disk, forks without end or takes all memory to its own sandbox", async () => {
    const [hostile, other] = [await start(), await start()];
    const filled = await run(hostile, "dd if=/dev/zero of=/home/big bs=1M count=100");
    expect(filled.lines.join()).toContain("No space left on device");
    expect(filled).toMatchObject({ exitCode: 1 });
    // It keeps the memory: the agent looks at it a few times a second, and one read can be over before.
    const dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=900M", "count=1000", "iflag=fullblock"];
    // The agent kills the process, or the kernel does; in the worst case the sandbox ends.
    await run(hostile, "", { argv: dd }).then(
      ({ status }) => expect(status).toMatch(/signal: killed|exit status 1/),
      (error: Error) => expect(error.message).toContain("it ran out of memory (256 MiB)"),
    );
    await hostile.discard();
    const forking = await start();
    const forked = run(forking, "f() { f | f & }; f; sleep 600", { timeoutMs: 2_000 }).catch((error: Error) => error);
    expect((await run(other, "echo not disturbed")).lines).toEqual(["stdout: not disturbed"]);
    expect(await forked).toBeDefined();
    await forking.discard();
    await other.discard();
    settled();
  });

  if (runtime === "gvisor") {
    it("end a step that floods its output", async () => {
      const sandbox = await start();
      let lines = 0;
      const onLine = () => {
        lines += 1;
      };
      const flooded = await run(sandbox, "while true; do cat /bin/busybox; done", { onLine });
      expect(flooded).toMatchObject({ exitCode: -1, status: "its output exceeds 64 MiB" });
      expect(lines).toBeGreaterThan(0);
      await sandbox.discard();
      settled();
    });
  }

  it("leave nothing when they are discarded, or their build is cancelled", async () => {
    const discarded = await start();
    await run(discarded, "echo one > /home/new");
    await discarded.discard();
    await discarded.discard();
    const cancelled = new AbortController();
    const sandbox = await start();
    const running = run(sandbox, "sleep 600", { signal: cancelled.signal });
    cancelled.abort(new Error("build was cancelled"));
    await expect(running).rejects.toThrow("build was cancelled");
    await sandbox.discard();
    settled();
  });
});
