// HTTPS servers on a simulated internet, with certificates of an authority that the platform trusts. They tell the test what they were sent, and
// nothing of it to the client.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { runCommand } from "@skerry/base";
import { CLOSED_ADDRESSES, startInternet, type TestInternet } from "./test-internet.ts";

/** A request as the server received it. */
export interface SeenRequest {
  readonly address: string;
  readonly isEncrypted: boolean;
  /** False: the client named none. */
  readonly servername: string | false;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface TrustedInternet extends TestInternet {
  /** PEM file of the authority: for SKERRY_CA_FILE. */
  readonly caFile: string;
  /** What the servers were sent since the last call, with all that was answered before this call. */
  seen(): Promise<SeenRequest[]>;
}

/** `names` are served at every address, except at the other public one: its certificate is nobody's. */
export async function startTrustedInternet(names: readonly string[]): Promise<TrustedInternet> {
  await using stack = new AsyncDisposableStack();
  const internet = stack.use(await startInternet());
  const dir = mkdtempSync(join(tmpdir(), "trusted-internet-"));
  stack.defer(() => rmSync(dir, { recursive: true }));
  await makeCertificates(dir, names);
  const read = (name: string) => readFileSync(join(dir, name), "utf8");
  const trusted = { cert: read("cert.pem"), key: read("key.pem") };
  const nobodys = { cert: read("nobody.pem"), key: read("nobody-key.pem") };
  const program = join(import.meta.dirname, "trusted-internet-servers.ts");
  const servers = spawn("ip", ["netns", "exec", internet.namespace, process.execPath, program], { stdio: ["pipe", "pipe", "inherit"] });
  stack.defer(() => void servers.kill("SIGKILL"));
  const lines = createInterface({ input: servers.stdout })[Symbol.asyncIterator]();
  /** The requests up to a line that is none. */
  async function requestsUntil(mark: string): Promise<SeenRequest[]> {
    const requests: SeenRequest[] = [];
    for (;;) {
      const { done, value } = await lines.next();
      if (done) throw new Error("the servers ended");
      if (value === mark) return requests;
      requests.push(JSON.parse(value) as SeenRequest);
    }
  }
  const at = [internet.publicAddress, CLOSED_ADDRESSES[0] ?? ""].map((address) => ({ address, ...trusted }));
  servers.stdin.write(`${JSON.stringify([...at, { address: internet.otherPublicAddress, ...nobodys }])}\n`);
  await requestsUntil("ready");
  const whole = stack.move();
  return {
    ...internet,
    caFile: join(dir, "ca.pem"),
    async seen() {
      servers.stdin.write("seen\n");
      return await requestsUntil("seen");
    },
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

async function makeCertificates(dir: string, names: readonly string[]): Promise<void> {
  const at = (name: string) => join(dir, name);
  const make = async (name: string, more: readonly string[]) => {
    const key = [
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      at(name === "cert" ? "key.pem" : `${name}-key.pem`),
    ];
    await runCommand("openssl", ["req", "-x509", ...key, "-out", at(`${name}.pem`), "-days", "30", "-subj", `/CN=test ${name}`, ...more]);
  };
  writeFileSync(at("none"), "");
  await make("ca", ["-addext", "keyUsage=critical,keyCertSign"]);
  const altNames = [
    "-addext",
    `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`,
    "-addext",
    "basicConstraints=critical,CA:FALSE",
  ];
  await make("cert", [...altNames, "-CA", at("ca.pem"), "-CAkey", at("ca-key.pem")]);
  await make("nobody", altNames);
}
