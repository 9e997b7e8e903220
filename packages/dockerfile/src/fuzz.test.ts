// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of a Dockerfile
import { expect, it } from "vitest";
import { DockerfileError, parseDockerfile } from "./index.ts";

/** A generator of numbers below 1 that gives the same ones for the same seed. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const PIECES =
  'FROM RUN COPY ADD ENV ARG WORKDIR USER SHELL CMD ENTRYPOINT ONBUILD HEALTHCHECK LABEL a b=c $a ${a ${a} ${a:-b} ${a##*} ${a//b/c} } { " \' \\ ` <<EOF <<-E EOF E [ ] ["a"] , --chown=u --from=x --mount --platform=linux/amd64 # = : / . .. * \\\n \n \n \n \t \r \0 \uFEFF \uD800 é 💥 AS -- $ $$ ${:} # escape=` # syntax=x constructor __proto__'
    .split(" ")
    .concat(" ", " ", " ");

function parsesOrRefuses(text: string, buildArgs: Record<string, string> = {}): boolean {
  try {
    const build = parseDockerfile(text, { buildArgs });
    expect(build.steps.every(({ args }) => args.every((arg) => typeof arg === "string" && !arg.includes("\0")))).toBe(true);
    return true;
  } catch (error) {
    if (!(error instanceof DockerfileError)) throw error;
    expect(error.problems.length).toBeGreaterThan(0);
    expect(error.problems.every(({ line }) => line >= 1 && line <= text.split("\n").length)).toBe(true);
    return false;
  }
}

it("is a build or a DockerfileError for any text", () => {
  const random = numbersFrom(20_261_122);
  const pick = () => PIECES[Math.floor(random() * PIECES.length)] ?? "";
  let built = 0;
  for (let round = 0; round < 5_000; round++) {
    const pieces = Array.from({ length: Math.floor(random() * 40) }, pick).join(random() < 0.5 ? " " : "");
    if (parsesOrRefuses(random() < 0.7 ? `FROM a\n${pieces}` : pieces, { a: pick().replace("\0", ""), b: "x" })) built++;
  }
  // Both happen often, so the fuzzer reaches what comes after the first check.
  expect(built).toBeGreaterThan(100);
  expect(built).toBeLessThan(4_900);
});

it.each([
  ["spaces before a word", `FROM a\nRUN ${" ".repeat(400_000)}x`],
  ["carriage returns", `FROM a\nRUN ${"\r".repeat(400_000)}x`],
  ["backslashes", `FROM a\nRUN ${"\\ ".repeat(200_000)}x`],
  ["continued lines", `FROM a\nRUN x ${"\\\n".repeat(200_000)}`],
  ["flags", `FROM a\nRUN ${"--a ".repeat(100_000)}`],
  ["heredocs", `FROM a\nRUN ${"<<a ".repeat(100_000)}`],
  ["quotes", `FROM a\nENV a=${"\"'".repeat(200_000)}`],
  ["open braces", `FROM a\nENV a=${"${a:-".repeat(100_000)}`],
  ["dollars", `FROM a\nENV a=${"$".repeat(400_000)}`],
  ["long names", `FROM a\nENV a=$${"a".repeat(400_000)}`],
  ["pairs", `FROM a\nENV ${"a=b ".repeat(100_000)}`],
  ["doubling values", `FROM a\nENV a=xxxxxxxx\n${"ENV a=$a$a\n".repeat(200)}`],
  ["long values in each line", `FROM a\nENV a=${"x".repeat(60_000)}\n${"ENV b=$a\n".repeat(900)}`],
  ["stars in a pattern", `FROM a\nENV a=${"a".repeat(500)}\n${`ENV b=\${a//${"a*".repeat(30)}b}\n`.repeat(500)}`],
  ["instructions", `FROM a\n${"RUN x\n".repeat(100_000)}`],
  ["too much text", "x".repeat(2_000_000)],
])("reads %s without end in time", (_what, text) => {
  parsesOrRefuses(text);
});
