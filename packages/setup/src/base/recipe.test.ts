import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseOsRelease } from "./distribution.ts";
import { BASE_FILES, BASE_PACKAGES, recipeHash } from "./recipe.ts";

const INPUTS = { distribution: "debian bookworm", arch: "x64", nodeVersion: "v24.21.0", npmVersion: "11.21.2", koffiDigest: "0" };

test("the same recipe has the same hash, another one another", () => {
  expect(recipeHash(INPUTS)).toBe(recipeHash({ ...INPUTS }));
  expect(recipeHash({ ...INPUTS, nodeVersion: "v24.22.0" })).not.toBe(recipeHash(INPUTS));
});

test("every package says what a user would miss", () => {
  expect(Object.keys(BASE_PACKAGES)).toContain("python3");
  expect(Object.entries(BASE_PACKAGES).filter(([, why]) => why.length < 3)).toEqual([]);
});

test.each(["sh", "bash"])("%s reads the login profile without complaint", (shell) => {
  const dir = mkdtempSync(join(tmpdir(), "profile-"));
  try {
    writeFileSync(join(dir, "profile"), BASE_FILES["etc/profile"] ?? "");
    const output = execFileSync(shell, ["-c", `. ${dir}/profile; echo "$PATH"`], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    expect(output).toMatch(/\/usr\/local\/bin:.*\/usr\/bin/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("reads os-release, quoted or not", () => {
  expect(parseOsRelease('ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n# no\n')).toEqual({
    ID: "debian",
    VERSION_ID: "12",
    PRETTY_NAME: "Debian GNU/Linux 12 (bookworm)",
  });
});
