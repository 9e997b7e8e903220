// HTTPS servers on a simulated internet, with certificates of an authority that the platform trusts. They tell the test what they were sent, and
// nothing of it to the client.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { startTellingProgram } from "./telling-program.ts";
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

/** What the servers' program is started with. */
export interface TrustedServer {
  readonly address: string;
  readonly cert: string;
  readonly key: string;
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
  const at = [internet.publicAddress, CLOSED_ADDRESSES[0] ?? ""].map((address) => ({ address, ...trusted }));
  const servers: TrustedServer[] = [...at, { address: internet.otherPublicAddress, ...nobodys }];
  const { told, stop } = await startTellingProgram<SeenRequest>(internet.namespace, program, servers);
  stack.defer(stop);
  const whole = stack.move();
  return {
    ...internet,
    caFile: join(dir, "ca.pem"),
    seen: told,
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
