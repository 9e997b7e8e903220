// A simulated internet with names: besides what `test-internet.ts` has, a name server at its public address, and servers for HTTP and HTTPS at
// all its addresses, which tell what they were asked and where.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { waitUntil } from "@skerry/testkit/wait-until";
import { startInternet, type TestInternet } from "./test-internet.ts";

/** What the name server says about a name. Of several lists of addresses, each question gets the next one. */
export interface TestName {
  readonly addresses?: readonly (readonly string[])[];
  readonly alias?: string;
  readonly text?: string;
}

export interface NamedInternet extends TestInternet {
  /** The name server: for SKERRY_DNS. */
  readonly resolver: string;
  /** Names that the name server was asked for since the last call. */
  asked(): Promise<readonly string[]>;
}

const CONTROL_PORT = 8053;

export async function startNamedInternet(namesOf: (internet: TestInternet) => Record<string, TestName>): Promise<NamedInternet> {
  await using stack = new AsyncDisposableStack();
  const internet = stack.use(await startInternet());
  const { namespace, publicAddress } = internet;
  const about = JSON.stringify({
    resolver: publicAddress,
    names: namesOf(internet),
    certificate: TEST_CERTIFICATE,
    controlPort: CONTROL_PORT,
  });
  const program = join(import.meta.dirname, "named-internet-servers.ts");
  const servers = spawn("nsenter", [`--net=/run/netns/${namespace}`, process.execPath, program], { stdio: ["pipe", "ignore", "inherit"] });
  servers.stdin.end(about);
  stack.defer(() => void servers.kill("SIGKILL"));
  const asked = async () =>
    (await (await fetch(`http://${publicAddress}:${CONTROL_PORT}/`, { signal: AbortSignal.timeout(30_000) })).json()) as string[];
  await waitUntil("the servers answer", () =>
    asked().then(
      () => true,
      () => false,
    ),
  );
  const whole = stack.move();
  return { ...internet, resolver: publicAddress, asked, [Symbol.asyncDispose]: () => whole.disposeAsync() };
}
