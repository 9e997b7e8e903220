import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findRegistryLogin } from "./registry-login.ts";

const DIGEST = `sha256:${"0".repeat(64)}`;
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skerry-registry-login-"));
});
afterEach(() => rmSync(home, { recursive: true }));

const auth = (username: string, password: string) => ({ auth: Buffer.from(`${username}:${password}`).toString("base64") });

function write(path: string, content: unknown): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

function helper(name: string, script: string): void {
  chmodSync(write(`bin/docker-credential-${name}`, `#!/bin/sh\n${script}\n`), 0o755);
}

async function find(image: string, options: { file?: string; env?: Record<string, string> } = {}) {
  const env = { PATH: `${home}/bin:/usr/bin:/bin`, HOME: home, ...options.env };
  const login = await findRegistryLogin(image, { file: options.file, env });
  return login && `${login.username} ${login.password}`;
}

it("prefers the most specific entry", async () => {
  write(".docker/config.json", {
    auths: {
      "host.example": auth("all", "1"),
      "host.example/team": auth("team", "a:b"),
      "host.example/team/app": auth("app", "3"),
      "https://old.example": auth("old", "4"),
      "https://index.docker.io/v1/": auth("hub", "5"),
      "empty.example": {},
    },
  });
  expect(await find(`host.example/team/app@${DIGEST}`)).toBe("app 3");
  expect(await find("host.example/team/other:1")).toBe("team a:b");
  expect(await find("host.example/team-2/app")).toBe("all 1");
  expect(await find("old.example/app")).toBe("old 4");
  expect(await find("debian:bookworm")).toBe("hub 5");
  for (const image of ["empty.example/app", "host.example.net/app", "scratch"]) expect(await find(image), image).toBeUndefined();
});

it("looks where the login commands write, or only in the file that is named", async () => {
  write(".docker/config.json", { auths: { "a.example": auth("docker", "1"), "b.example": auth("docker", "2") } });
  write(".config/containers/auth.json", { auths: { "a.example": auth("podman", "3") } });
  const file = write("mine.json", { auths: { "c.example": auth("mine", "4") } });
  expect(await find("a.example/x")).toBe("podman 3");
  expect(await find("b.example/x")).toBe("docker 2");
  expect(await find("c.example/x", { file })).toBe("mine 4");
  expect(await find("c.example/x", { env: { REGISTRY_AUTH_FILE: file } })).toBe("mine 4");
  expect(await find("a.example/x", { env: { REGISTRY_AUTH_FILE: file } })).toBeUndefined();
  await expect(find("a.example/x", { file })).rejects.toThrow(`${file} has no credentials for a.example`);
  await expect(find("a.example/x", { file: join(home, "none") })).rejects.toThrow("there is no such file");
});

it("asks helper programs", async () => {
  write(".docker/config.json", {
    auths: { "plain.example": auth("plain", "1") },
    credHelpers: { "one.example": "one", "token.example": "token", "bad.example": "bad", "none.example": "none", "../x": "../x" },
    credsStore: "store",
  });
  helper("one", `read -r host; echo "{\\"Username\\":\\"$host\\",\\"Secret\\":\\"s\\"}"`);
  helper("token", `echo '{"Username":"<token>","Secret":"s"}'`);
  helper("bad", `echo secret-text`);
  helper("store", `read -r host; echo credentials not found in native keychain; exit 1`);
  expect(await find("one.example/x")).toBe("one.example s");
  expect(await find("plain.example/x")).toBe("plain 1");
  expect(await find("other.example/x")).toBeUndefined();
  await expect(find("token.example/x")).rejects.toThrow("it has an identity token");
  await expect(find("none.example/x")).rejects.toThrow("docker-credential-none gave no credentials for none.example");
  const failure = await find("bad.example/x").catch((error: Error) => error);
  expect(String(failure)).toContain("not JSON");
  expect(String(failure)).not.toContain("secret-text");
});

it("says which file is damaged, without its content", async () => {
  const file = write(".docker/config.json", `{"auths": secret-text`);
  const failure = await find("a.example/x").catch((error: Error) => error);
  expect(String(failure)).toContain(`${file}: not JSON`);
  expect(String(failure)).not.toContain("secret-text");
  for (const content of [[], { auths: [] }, { auths: { a: { auth: 1 } } }, { credsStore: 1 }, { credHelpers: { a: {} } }]) {
    write(".docker/config.json", content);
    await expect(find("a.example/x"), JSON.stringify(content)).rejects.toThrow("not a file of registry credentials");
  }
});
