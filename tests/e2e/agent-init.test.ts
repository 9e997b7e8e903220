import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

describe.each(runtimesFor("what an agent is told"))("the platform's /init on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  let token: string;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    const { body } = await callApi(platform, "/v2/sandboxes", {
      body: { templateID: "base", envVars: { COLOUR: "grey", E2B_SANDBOX: "no" } },
    });
    const created = body as { sandboxID: string; envdAccessToken: string };
    token = created.envdAccessToken;
    sandbox = await Sandbox.connect(created.sandboxID, clientOf(platform));
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(platform.edgeUrl + path, { headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49983", ...headers } });

  /** Calls /init from inside the sandbox. From outside only the platform can reach it. */
  async function initFromInside(body: object, headers = `-H 'X-Access-Token: ${token}'`): Promise<string> {
    await sandbox.files.write("/tmp/init.json", JSON.stringify(body));
    const { stdout } = await sandbox.commands.run(
      `curl -s -o /tmp/answer -w '%{http_code}' ${headers} -d @/tmp/init.json http://127.0.0.1:49983/init; echo; cat /tmp/answer`,
    );
    return stdout.trim();
  }

  it("sets the variables of the create, and the platform's own with precedence", async () => {
    const envs = await ask("/envs", { "X-Access-Token": token });
    expect(await envs.json()).toEqual({
      COLOUR: "grey",
      E2B_SANDBOX: "true",
      E2B_SANDBOX_ID: sandbox.sandboxId,
      E2B_TEMPLATE_ID: (await sandbox.getInfo()).templateId,
    });
    expect((await ask("/envs")).status).toBe(401);
    expect((await sandbox.commands.run("echo $COLOUR $E2B_SANDBOX $E2B_SANDBOX_ID")).stdout).toBe(`grey true ${sandbox.sandboxId}\n`);
  });

  it("keeps the clock correct", async () => {
    const before = Date.now();
    const inside = Number((await sandbox.commands.run("date +%s%3N")).stdout);
    expect(inside).toBeGreaterThan(before - 50);
    expect(inside).toBeLessThan(Date.now() + 50);
  });

  it("cannot be called by a guest without the token, nor through the edge", async () => {
    expect(await initFromInside({}, "")).toBe("401\naccess token reset not authorized");
    expect(await initFromInside({ accessToken: "mine" }, "")).toBe("401\naccess token validation failed");
    const throughEdge = await fetch(`${platform.edgeUrl}/init`, {
      method: "POST",
      headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49983", "X-Access-Token": token },
    });
    expect(throughEdge.status).toBe(404);
    expect(await throughEdge.json()).toMatchObject({
      message: expect.stringContaining("reserved for the E2B control plane"),
      path: "/init",
      code: 404,
    });
  });

  it("adds a certificate authority to those that programs trust, and replaces it", async () => {
    const bundle = async (text: string) =>
      Number((await sandbox.commands.run(`grep -c '${text}' /etc/ssl/certs/ca-certificates.crt || true`)).stdout);
    const image = await bundle("BEGIN CERTIFICATE");
    expect(image).toBeGreaterThan(0);
    const authority = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n\n\n`;
    expect(await initFromInside({ accessToken: token, caBundle: authority("first") })).toBe("204");
    expect([await bundle("^first$"), await bundle("BEGIN CERTIFICATE")]).toEqual([1, image + 1]);
    expect(await initFromInside({ accessToken: token, caBundle: authority("first") })).toBe("204");
    expect(await bundle("^first$")).toBe(1);
    expect(await initFromInside({ accessToken: token, caBundle: authority("second") })).toBe("204");
    expect([await bundle("^first$"), await bundle("^second$"), await bundle("BEGIN CERTIFICATE")]).toEqual([0, 1, image + 1]);
    expect((await sandbox.files.read("/usr/local/share/ca-certificates/e2b-ca.crt")).split("\n")[1]).toBe("second");
    await sandbox.commands.run("mv /etc/ssl/certs/ca-certificates.crt /tmp/gone", { user: "root" });
    const broken = { accessToken: token, caBundle: authority("third"), envVars: { COLOUR: "green" } };
    expect(await initFromInside(broken)).toMatch(/^400\n.*does not exist/);
    // The rest of the request is applied.
    expect(await (await ask("/envs", { "X-Access-Token": token })).json()).toMatchObject({ COLOUR: "green" });
  });
});
