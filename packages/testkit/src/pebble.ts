// Pebble, an ACME authority for tests, and a DNS server with the records that the hook sets.

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand, spawnCommand } from "@skerry/base";
import { freePorts } from "./free-ports.ts";

export interface TestAuthority extends AsyncDisposable {
  readonly dir: string;
  readonly directory: string;
  /** Signed the certificate of the directory. */
  readonly caFile: string;
  readonly hook: string;
  /** The calls of the hook: action, name, value. */
  hookCalls(): string[][];
  /** The names of its variables. */
  hookVariables(): string[];
}

/** Starts an authority whose certificates are valid for this time. */
export async function startPebble(certificateSeconds: number): Promise<TestAuthority> {
  const dir = mkdtempSync(join(tmpdir(), "skerry-acme-"));
  const [directoryPort = 0, managementPort = 0, dnsPort = 0, recordsPort = 0] = await freePorts(4);
  const at = (name: string) => join(dir, name);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at("key.pem")];
  const extensions = ["-addext", "subjectAltName=IP:127.0.0.1"];
  await runCommand("openssl", ["req", "-x509", ...key, "-out", at("cert.pem"), "-days", "2", "-subj", "/CN=test directory", ...extensions]);
  const pebble = {
    listenAddress: `127.0.0.1:${directoryPort}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: at("cert.pem"),
    privateKey: at("key.pem"),
    httpPort: 1,
    tlsPort: 1,
    ocspResponderURL: "",
    externalAccountBindingRequired: false,
    certificateValidityPeriod: certificateSeconds,
  };
  writeFileSync(at("pebble.json"), JSON.stringify({ pebble }));
  writeFileSync(at("calls"), "");
  writeFileSync(at("hook"), hookText(at("calls"), recordsPort), { mode: 0o700 });
  chmodSync(at("hook"), 0o700);
  const off = ["-http01", "", "-https01", "", "-tlsalpn01", ""];
  const servers = [
    spawnCommand("pebble-challtestsrv", ["-dns01", `127.0.0.1:${dnsPort}`, "-management", `127.0.0.1:${recordsPort}`, ...off]),
    spawnCommand("pebble", ["-config", at("pebble.json"), "-dnsserver", `127.0.0.1:${dnsPort}`], {
      env: { PATH: "/usr/bin:/bin", PEBBLE_VA_NOSLEEP: "1" },
    }),
  ];
  const ended = servers.map((server) => new Promise((resolve) => server.once("close", resolve)));
  await Promise.all([answers(`http://127.0.0.1:${recordsPort}/`), answers(`http://127.0.0.1:${directoryPort}/`)]);
  return {
    dir,
    directory: `https://127.0.0.1:${directoryPort}/dir`,
    caFile: at("cert.pem"),
    hook: at("hook"),
    hookCalls: () =>
      readFileSync(at("calls"), "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => line.split(" ")),
    hookVariables: () => readFileSync(at("variables"), "utf8").trim().split("\n"),
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.kill("SIGKILL");
      await Promise.all(ended);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The DNS server of the test forgets all values of a name at once. */
function hookText(calls: string, port: number): string {
  return `#!/bin/bash
set -e
echo "$1 $2 $3" >> ${calls}
compgen -e > "\${0%/*}/variables"
case "$1" in
  present) way=set-txt; body="{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" ;;
  cleanup) way=clear-txt; body="{\\"host\\":\\"$2.\\"}" ;;
esac
curl --noproxy '*' -sSf -X POST -d "$body" http://127.0.0.1:${port}/$way
echo "$1 is done"
`;
}

async function answers(url: string): Promise<void> {
  for (const endAt = Date.now() + 60_000; ; await sleep(50)) {
    try {
      await (await fetch(url)).arrayBuffer();
      return;
    } catch (error) {
      if (Date.now() > endAt) throw error;
    }
  }
}
