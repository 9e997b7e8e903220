import { repeated, samplesOf, timed } from "../statistics.ts";
import type { AgentSandbox } from "./agent-sandbox.ts";

const OUTPUT_MB = 100;
const ENTRIES = 100_000;

export async function outputAndCat(sandbox: AgentSandbox): Promise<{ start: number[]; cat: number[] }> {
  await sandbox.shell(`head -c ${OUTPUT_MB}000000 /dev/urandom > /tmp/output && chmod 644 /tmp/output`);
  const speed = (ms: number) => OUTPUT_MB / (ms / 1000);
  const start = await repeated(3, async () => {
    let bytes = 0;
    for await (const { event } of sandbox.process.start({ process: { cmd: "cat", args: ["/tmp/output"] }, stdin: false })) {
      if (event?.event.case === "data") bytes += event.event.value.output.value?.length ?? 0;
    }
    if (bytes !== OUTPUT_MB * 1e6) throw new Error(`${bytes} bytes of output arrived`);
  });
  const cat = await sandbox.shell(shellTimes(4, "cat /tmp/output > /tmp/copy"));
  await sandbox.shell("rm /tmp/output /tmp/copy");
  return { start: start.map(speed), cat: samplesOf(cat).slice(1).map(speed) };
}

/** Makes only the system calls of a listing. Prints the milliseconds of each run. */
const SCAN = `import os, sys, time
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    for entry in os.scandir("/tmp/many"):
        os.lstat(entry.path)
        os.listxattr(entry.path)
    print((time.perf_counter() - start) * 1000)
`;

export async function listings(sandbox: AgentSandbox): Promise<{ stat: number[]; list: number[]; find: number[]; scan: number[] }> {
  await sandbox.shell(`mkdir -p /tmp/many && cd /tmp/many && seq ${ENTRIES} | xargs touch`);
  await sandbox.sdk.files.write("/tmp/scan.py", SCAN);
  const list = () =>
    sandbox.filesystem.listDir({ path: "/tmp/many", depth: 1 }).then(({ entries }) => {
      if (entries.length !== ENTRIES) throw new Error(`${entries.length} entries were listed`);
    });
  const times = {
    stat: await repeated(1_000, () => sandbox.filesystem.stat({ path: "/etc/hostname" })),
    list: await repeated(3, list),
    find: samplesOf(await sandbox.shell(shellTimes(4, "find /tmp/many -ls > /dev/null"))).slice(1),
    scan: samplesOf(await sandbox.shell("python3 /tmp/scan.py 4")).slice(1),
  };
  await sandbox.shell("rm -r /tmp/many");
  return times;
}

/** Starts `sleep 5` `count` times at once through the agent, then from one program inside the sandbox. */
export async function sleepsAndLoop(sandbox: AgentSandbox, count: number): Promise<{ streams: number; loop: number }> {
  const one = async () => {
    for await (const { event } of sandbox.process.start({ process: { cmd: "sleep", args: ["5"] }, stdin: false })) {
      if (event?.event.case === "end" && event.event.value.exitCode !== 0) throw new Error("a sleep failed");
    }
  };
  const streams = await timed(() => Promise.all(Array.from({ length: count }, one)));
  await sandbox.sdk.files.write(
    "/tmp/sleeps.py",
    `import os, time
start = time.perf_counter()
pids = [os.posix_spawn("/bin/sleep", ["sleep", "5"], os.environ) for _ in range(${count})]
for pid in pids: os.waitpid(pid, 0)
print((time.perf_counter() - start) * 1000)
`,
  );
  return { streams, loop: samplesOf(await sandbox.shell("python3 /tmp/sleeps.py"))[0] ?? Number.NaN };
}

/** A shell program that runs the command repeatedly and prints the milliseconds of each run. */
function shellTimes(rounds: number, command: string): string {
  return `for i in $(seq ${rounds}); do start=$(date +%s%N); ${command}; end=$(date +%s%N); echo "$((end - start))e-6"; done`;
}
