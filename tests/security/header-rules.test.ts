// Headers of a caller's rules, attacked from inside sandboxes: docs/network.md.

import { runCommand } from "@skerry/base";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { CommandExitError, Sandbox, type SandboxOpts, Secret } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { CLOSED_ADDRESSES } from "./test-internet.ts";
import { startTrustedInternet, type TrustedInternet } from "./trusted-internet.ts";

const HOST = "api.example.test";
const OTHER = "other.example.test";
const VALUE = "v4lue-that-no-sandbox-has";

describe.each(runtimesFor("rules for headers"))("rules for headers on %s", (runtime) => {
  let platform: Platform;
  let internet: TrustedInternet;

  beforeAll(async () => {
    internet = await startTrustedInternet([HOST, OTHER, "a.b.wild.example.test", "wild.example.test"]);
    platform = await startPlatform({ runtime, env: { SKERRY_CA_FILE: internet.caFile } });
    await Secret.create("api-token", VALUE, clientOf(platform));
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await internet?.[Symbol.asyncDispose]();
  });

  const headers = { Authorization: `Bearer ${Secret.fill("api-token")}`, "X-Fixed": "fixed" };
  const rules = { [HOST]: [{ transform: { headers } }] };

  async function create(network: SandboxOpts["network"] = { rules }): Promise<Sandbox> {
    const sandbox = await Sandbox.create({ ...clientOf(platform), network: network ?? {} });
    const names = [HOST, OTHER, "a.b.wild.example.test", "wild.example.test"].map((name) => `${internet.publicAddress} ${name}`);
    await sandbox.commands.run(`printf '%s\\n' '${names.join("' '")}' >> /etc/hosts`, { user: "root" });
    await internet.seen();
    return sandbox;
  }
  /** The output, or how the command failed. */
  async function run(sandbox: Sandbox, command: string): Promise<string> {
    try {
      return (await sandbox.commands.run(command, { timeoutMs: 120_000 })).stdout.trim();
    } catch (error) {
      if (error instanceof CommandExitError) return `failed: ${error.exitCode} ${error.stderr || error.stdout}`;
      throw error;
    }
  }
  const curl = (options: string) => `curl -sS --max-time 60 ${options}`;
  const authorizations = async () =>
    (await internet.seen()).map(({ servername, url, headers: sent }) => [servername, url, sent.authorization]);
  const withHeader = [HOST, "/", `Bearer ${VALUE}`];

  it("reach the host from curl, Python and Node.js, with the trust stores as they are", async () => {
    const sandbox = await create();
    const python = `python3 -c "import urllib.request as r; print(r.urlopen('https://${HOST}/').read().decode())"`;
    const node = `node -e "fetch('https://${HOST}/').then(r => r.text()).then(console.log)"`;
    for (const command of [curl(`https://${HOST}/`), `sudo ${curl(`https://${HOST}/`)}`, python, node]) {
      expect(await run(sandbox, command), command).toBe("hello");
      const [request, ...others] = await internet.seen();
      expect(request).toMatchObject({ isEncrypted: true, headers: { authorization: `Bearer ${VALUE}`, "x-fixed": "fixed", host: HOST } });
      expect(others).toEqual([]);
    }
    expect(await run(sandbox, curl(`--http2 -H 'Authorization: mine' -d body https://${HOST}/`))).toBe("hello");
    expect(await internet.seen()).toMatchObject([{ method: "POST", headers: { authorization: `Bearer ${VALUE}`, "content-length": "4" } }]);
    await sandbox.kill();
  });

  it("reach no other host, no port but 443, and nothing over plain HTTP; other hosts keep their certificates", async () => {
    const sandbox = await create({
      rules: { ...rules, "*.wild.example.test": [{ transform: { headers: { "X-Wild": `\${e2b.secrets.API-TOKEN}` } } }] },
    });
    for (const url of [`https://${OTHER}/`, `http://${HOST}/`, `http://${HOST}:443/`, "https://wild.example.test/"])
      await run(sandbox, curl(url));
    const seen = await internet.seen();
    expect(seen.map(({ servername }) => servername)).toEqual([OTHER, "", "wild.example.test"]);
    expect(JSON.stringify(seen)).not.toContain(VALUE);
    expect(await run(sandbox, curl("https://a.b.wild.example.test/"))).toBe("hello");
    expect(await internet.seen()).toMatchObject([{ headers: { "x-wild": VALUE } }]);
    const issuer = (name: string) =>
      `openssl s_client -connect ${name}:443 -servername ${name} </dev/null 2>/dev/null | openssl x509 -noout -issuer`;
    expect(await run(sandbox, issuer(OTHER))).toMatch(/CN ?= ?test ca/);
    expect(await run(sandbox, issuer(HOST))).toMatch(/CN ?= ?Skerry sandbox CA/);
    await sandbox.kill();
  });

  it("are not sent to whom the sandbox chooses", async () => {
    const sandbox = await create();
    const { publicAddress: one, otherPublicAddress: two } = internet;
    const raw = (head: string) =>
      `printf '${head}\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -connect ${one}:443 -servername ${HOST} 2>/dev/null | head -1`;
    for (const [command, answer] of [
      // A server of its own for the name: its certificate is not the host's.
      [curl(`-o /dev/null -w '%{http_code}' --resolve ${HOST}:443:${two} https://${HOST}/`), "502"],
      [curl(`-k -o /dev/null -w '%{http_code}' --resolve ${HOST}:443:${two} https://${HOST}/`), "502"],
      // Another name behind the same server.
      [raw(`GET / HTTP/1.1\\r\\nHost: ${OTHER}`), expect.stringContaining("421")],
      [raw(`GET / HTTP/1.1\\r\\nHost: ${HOST}\\r\\nHost: ${OTHER}`), expect.stringMatching(/421|400/)],
      [raw(`GET https://${OTHER}/ HTTP/1.1\\r\\nHost: ${HOST}`), expect.stringContaining("400")],
      // What would be told to the sandbox.
      [raw(`TRACE / HTTP/1.1\\r\\nHost: ${HOST}`), expect.stringContaining("405")],
      [raw(`CONNECT ${OTHER}:443 HTTP/1.1\\r\\nHost: ${HOST}`), ""],
      // A private address for the name, whose certificate is the host's.
      [curl(`-o /dev/null -w '%{http_code}' --resolve ${HOST}:443:${CLOSED_ADDRESSES[0]} https://${HOST}/`), "502"],
      // A smuggled second request.
      [raw(`POST / HTTP/1.1\\r\\nHost: ${HOST}\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked`), expect.stringMatching(/^$|400/)],
    ] as const) {
      expect(await run(sandbox, command), command).toEqual(answer);
    }
    expect(await internet.seen()).toEqual([]);
    // Without the name of the host in the handshake nothing is added, and the server's own certificate is shown.
    const nameless = `printf 'GET / HTTP/1.1\\r\\nHost: ${HOST}\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -noservername -connect ${one}:443`;
    expect(await run(sandbox, nameless)).toContain("hello");
    expect(await authorizations()).toEqual([[false, "/", undefined]]);
    await sandbox.kill();
  });

  it("grant no access", async () => {
    const sandbox = await create({ rules, denyOut: ["0.0.0.0/0"] });
    expect(await run(sandbox, curl(`https://${HOST}/`))).toMatch(/^failed/);
    await sandbox.updateNetwork({ rules, denyOut: ["0.0.0.0/0"], allowOut: [internet.publicAddress] });
    expect(await run(sandbox, curl(`https://${HOST}/`))).toBe("hello");
    expect(await authorizations()).toEqual([withHeader]);
    await sandbox.kill();
  });

  it("change while the sandbox runs, and with the value of the secret", async () => {
    const sandbox = await create({});
    const ask = () => run(sandbox, curl(`https://${HOST}/`));
    expect(await ask()).toBe("hello");
    expect(await authorizations()).toEqual([[HOST, "/", undefined]]);
    await sandbox.updateNetwork({ rules });
    expect(await ask()).toBe("hello");
    expect(await authorizations()).toEqual([withHeader]);
    await Secret.update("api-token", `${VALUE}-next`, clientOf(platform));
    await waitUntil("the next value is sent", async () => {
      await ask();
      return (await authorizations()).some(([, , sent]) => sent === `Bearer ${VALUE}-next`);
    });
    await Secret.update("api-token", VALUE, clientOf(platform));
    await sandbox.updateNetwork({ rules: { [HOST]: [{ transform: { headers: { Authorization: Secret.fill("no-such-secret") } } }] } });
    expect(await run(sandbox, curl(`-o /dev/null -w '%{http_code}' https://${HOST}/`))).toBe("502");
    expect(await authorizations()).toEqual([]);
    await sandbox.updateNetwork({});
    expect(await ask()).toBe("hello");
    expect(await authorizations()).toEqual([[HOST, "/", undefined]]);
    await sandbox.kill();
  });

  it("hold after a pause, for forks, and after a crash of the platform, and no request goes without them", async () => {
    const sandbox = await create();
    const ask = (of: Sandbox) => run(of, curl(`https://${HOST}/`));
    const connect = (id: string) => Sandbox.connect(id, clientOf(platform));
    // It has read the certificates before, and keeps them.
    const program = `const ask = () => fetch("https://${HOST}/").then((r) => r.text(), (e) => String(e.cause ?? e)).then((t) => require("fs").writeFileSync("/tmp/told", t)).then(() => setTimeout(ask, 200)); ask();`;
    await sandbox.files.write("/tmp/asks.js", program);
    await sandbox.commands.run("node /tmp/asks.js", { background: true, timeoutMs: 0 });
    const told = async (of: Sandbox) => {
      await of.commands.run("rm -f /tmp/told");
      await waitUntil("the program has asked again", () => of.files.exists("/tmp/told"));
      return await of.files.read("/tmp/told");
    };
    expect(await told(sandbox)).toBe("hello");
    const fork = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    const forked = await connect((fork.body as { sandbox: { sandboxID: string } }[])[0]?.sandbox.sandboxID ?? "");
    expect(await ask(forked)).toBe("hello");
    if (runtime === "gvisor") expect(await told(forked)).toBe("hello");
    await forked.kill();
    await platform.kill9();
    await platform.start();
    await waitUntil("the rules have their values again", async () => (await ask(await connect(sandbox.sandboxId))) === "hello");
    expect(await told(await connect(sandbox.sandboxId))).toBe("hello");
    await sandbox.pause();
    expect(await filesWith(platform.dataDir, VALUE)).toBe("");
    const resumed = await connect(sandbox.sandboxId);
    expect(await ask(resumed)).toBe("hello");
    expect(new Set((await authorizations()).map(String))).toEqual(new Set([String(withHeader)]));
    await resumed.kill();
  });

  it("leave no value and no key of the authority in the sandbox, the log, the records and the answers of the API", async () => {
    const sandbox = await create();
    expect(await run(sandbox, curl(`https://${HOST}/`))).toBe("hello");
    // The pattern matches the value and not itself.
    const search = "grep -rslE 'v4lue-that[-]no' /etc /home /root /tmp /var /run /dev/skerry /proc/[0-9]*/environ || true";
    expect((await sandbox.commands.run(search, { user: "root" })).stdout).toBe("");
    expect((await sandbox.commands.run("cat /dev/skerry/*", { user: "root" })).stdout).not.toContain("PRIVATE KEY");
    expect(platform.logs()).not.toContain(VALUE);
    expect(await filesWith(platform.dataDir, sandbox.sandboxId)).toContain("sandbox.json");
    expect(await filesWith(platform.dataDir, VALUE)).toBe("");
    expect(JSON.stringify((await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body)).not.toContain(VALUE);
    expect(await sandbox.getInfo()).toMatchObject({ network: { rules } });
    await sandbox.kill();
  });
});

/** The files below a folder that contain a text: not the disks of sandboxes, which are larger, and not what is mounted there. */
async function filesWith(dir: string, text: string): Promise<string> {
  const search = 'find "$0" -xdev -type f -size -256M -exec grep -slF -e "$1" {} + 2>/dev/null; true';
  return (await runCommand("sh", ["-c", search, dir, text])).stdout;
}
