import { AGENT_ROOT, nodeArguments } from "@skerry/agent";
import { samplesOf, timed } from "../statistics.ts";
import type { AgentSandbox } from "./agent-sandbox.ts";

const ROUNDS = 60;
const WARM_UP = 5;
const STARTS = 10;

/** Runs `bash -l -c true` for each line of input, and prints the milliseconds. */
const LOOP = `import os, sys, time
argv = ["/bin/bash", "-l", "-c", "true"]
for _ in sys.stdin:
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)
    print((time.perf_counter() - start) * 1000, flush=True)
`;

/** The three contenders take turns, so that other load on the host affects all of them alike. */
export async function commandsAndLoop(sandbox: AgentSandbox): Promise<{ commands: number[]; loop: number[]; nothing: number[] }> {
  const { sdk } = sandbox;
  await sdk.files.write("/tmp/loop.py", LOOP);
  let onLine = (_line: string) => {};
  const program = await sdk.commands.run("exec python3 /tmp/loop.py", {
    background: true,
    stdin: true,
    timeoutMs: 0,
    onStdout: (text) => onLine(text),
  });
  const once = () =>
    new Promise<number>((resolve, reject) => {
      onLine = (line) => resolve(Number(line));
      sdk.commands.sendStdin(program.pid, "\n").catch(reject);
    });
  const taken = { commands: [] as number[], loop: [] as number[], nothing: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const command = await timed(() => sdk.commands.run("true"));
    const loop = await once();
    const nothing = await timed(() => sdk.isRunning());
    if (round < 0) continue;
    taken.commands.push(command);
    taken.loop.push(loop);
    taken.nothing.push(nothing);
  }
  await program.kill();
  return taken;
}

/** Starts a program that serves HTTP on a port, and prints the milliseconds until it answers. */
const UNTIL_ANSWER = `import socket, subprocess, sys, time
port, rounds, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for _ in range(rounds):
    start = time.perf_counter()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"GET /health HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
                if client.recv(12).startswith(b"HTTP/1.1 20"): break
        except ConnectionRefusedError:
            time.sleep(0.002)
    print((time.perf_counter() - start) * 1000, flush=True)
    child.kill()
    child.wait()
`;

const PLAIN_SERVER = 'require("node:http").createServer((_request, response) => response.end()).listen(Number(process.argv[1]))';

/** The start of a second agent in the same sandbox on another port, compared with a minimal server on the same Node.js. */
export async function startsAgain(sandbox: AgentSandbox): Promise<{ agent: number[]; plain: number[] }> {
  await sandbox.sdk.files.write("/tmp/until_answer.py", UNTIL_ANSWER);
  const node = nodeArguments(process.arch === "arm64" ? "arm64" : "x64", AGENT_ROOT).join(" ");
  const measure = async (port: number, program: string) => {
    const output = await sandbox.shell(`python3 /tmp/until_answer.py ${port} ${STARTS + 1} ${program}`);
    return samplesOf(output).slice(1);
  };
  return {
    agent: await measure(49_990, `${node} ${AGENT_ROOT}/agent.js --port 49990`),
    plain: await measure(49_991, `${node} -e '${PLAIN_SERVER}' 49991`),
  };
}
