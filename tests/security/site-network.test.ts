import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { CommandExitError, Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { type CompanyNetwork, OTHER_PORT, PROXY_PORT, startCompanyNetwork } from "./company-network.ts";

const URL = "https://packages.example";

describe.each(runtimesFor("sandboxes behind a company's proxy"))("a company's network, from a sandbox on %s", (runtime) => {
  let company: CompanyNetwork;
  let platform: Platform;
  let sandbox: Sandbox;
  const hostServer = createServer();
  const onEveryAddress = () => (hostServer.address() as AddressInfo).port;
  beforeAll(async () => {
    await new Promise<void>((resolve) => hostServer.listen(0, "0.0.0.0", resolve));
    company = await startCompanyNetwork();
    const { proxyUrl, hostAddress, hostPort } = company;
    const onHost = proxyUrl.replace(/@.*/, `@${hostAddress}:${hostPort}`);
    platform = await startPlatform({
      runtime,
      env: { SKERRY_CA_FILE: company.caFile, SKERRY_HTTP_PROXY: onHost, SKERRY_HTTPS_PROXY: proxyUrl, SKERRY_POOL_SIZE: "1" },
    });
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await company?.[Symbol.asyncDispose]();
    hostServer.close();
  });

  const run = async (command: string, options: { user?: string; envs?: Record<string, string>; in?: Sandbox } = {}) => {
    const { in: where = sandbox, ...rest } = options;
    try {
      return (await where.commands.run(command, { ...rest, timeoutMs: 60_000 })).stdout.trim();
    } catch (error) {
      if (error instanceof CommandExitError) return `failed: ${error.stderr || error.stdout}`;
      throw error;
    }
  };

  const python = `python3 -c "import urllib.request; print(urllib.request.urlopen('${URL}/').read().decode())"`;
  const apt = `apt-get -o Dir::Etc::sourcelist=/tmp/company.list -o Dir::Etc::sourceparts=- -o Dir::State::Lists=/tmp/lists -o Dir::Cache=/tmp/cache update`;

  it("is where pip, npm, apt, git, curl and Python fetch from, with nothing set by the caller", async () => {
    expect(await run(`curl -sS ${URL}/`)).toBe("through the proxy");
    expect(await run("curl -sS http://packages.example/")).toBe("through the proxy");
    expect(await run(`sudo curl -sS ${URL}/`)).toBe("through the proxy");
    expect(await run(python)).toBe("through the proxy");
    expect(await run(`cd /tmp && pip download --quiet --no-deps --index-url ${URL}/simple six && ls six-1.0-py3-none-any.whl`)).toMatch(
      /six-1\.0-py3-none-any\.whl$/,
    );
    expect(await run(`npm view is-number version --registry ${URL}/`)).toBe("7.0.0");
    expect(await run(`git ls-remote ${URL}/repo.git`)).toMatch(/^0123456789abcdef.*refs\/heads\/main$/);
    await run(`echo 'deb [trusted=yes] ${URL}/debian ./' > /tmp/company.list; mkdir -p /tmp/lists/partial /tmp/cache/archives/partial`);
    expect(await run(apt, { user: "root" })).not.toMatch(/failed|Err:|certificate/i);
    expect(await run("cat /tmp/lists/*Packages", { user: "root" })).toContain("of-the-company");
  });

  it("is how the node pulls the images of builds: a registry there answers, and has no such image", async () => {
    const { templateID, buildID } = (await callApi(platform, "/v3/templates", { body: { name: "from-the-company" } })).body as {
      templateID: string;
      buildID: string;
    };
    const build = `/v2/templates/${templateID}/builds/${buildID}`;
    expect((await callApi(platform, build, { body: { fromImage: "packages.example/of-the-company:1", steps: [] } })).status).toBe(202);
    const status = async () =>
      (await callApi(platform, `/templates/${templateID}/builds/${buildID}/status`)).body as { status: string; reason?: object };
    await waitUntil("the build has failed", async () => (await status()).status === "error", 60_000);
    expect((await status()).reason).toMatchObject({ step: "base", message: expect.stringContaining("not found") });
  });

  it("has its authority in the system's store, for programs without the variables", async () => {
    const proxy = `--proxy ${company.proxyUrl}`;
    expect(await run(`env -i PATH=$PATH curl -sS ${proxy} ${URL}/`)).toBe("through the proxy");
  });

  it("is not what a caller gets who sets other variables", async () => {
    expect(await run(`curl -sS ${URL}/`, { envs: { CURL_CA_BUNDLE: "/usr/share/doc/none" } })).toMatch(/^failed: .*(CAfile|certificate)/i);
    expect(await run("echo $HTTPS_PROXY-$https_proxy", { envs: { https_proxy: "http://own:1" } })).toBe("-http://own:1");
    expect(await run("echo $no_proxy")).toContain("localhost");
  });

  it("is open at the proxy's address and port alone", async () => {
    const probe = (address: string, port: number, where = sandbox) =>
      run(
        `python3 -c 'import socket; s = socket.socket(); s.settimeout(1.5); print(s.connect_ex(("${address}", ${port})) == 0)' 2>/dev/null || echo False`,
        { in: where },
      );
    const { proxyAddress, otherAddress, hostAddress, hostPort } = company;
    const proxies = [
      [proxyAddress, PROXY_PORT],
      [hostAddress, hostPort],
    ] as const;
    const probeProxies = (where?: Sandbox) => Promise.all(proxies.map(([address, port]) => probe(address, port, where)));
    expect(await probeProxies()).toEqual(["True", "True"]);
    const others = [
      probe(proxyAddress, OTHER_PORT),
      probe(otherAddress, PROXY_PORT),
      probe(otherAddress, OTHER_PORT),
      probe(hostAddress, onEveryAddress()),
      probe(hostAddress, PROXY_PORT),
      probe(proxyAddress, hostPort),
    ];
    expect(await Promise.all(others)).toEqual(others.map(() => "False"));
    // A sandbox without internet access has none through the proxy either.
    const { sandboxID } = (
      await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", allow_internet_access: false, timeout: 3_600 } })
    ).body as { sandboxID: string };
    const closed = await Sandbox.connect(sandboxID, clientOf(platform));
    expect(await probeProxies(closed)).toEqual(["False", "False"]);
    await closed.kill();
  });

  it("leaves no trace in the log", () => {
    expect(readFileSync(platform.logFile, "utf8")).not.toMatch(/pass-word|BEGIN CERTIFICATE/);
  });
});
