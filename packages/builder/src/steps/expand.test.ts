import fc from "fast-check";
import { expect, test } from "vitest";
import { BadSubstitution, expandVariables, variablesIn } from "./expand.ts";

const env: Readonly<Record<string, string>> = { PATH: "/usr/bin:/bin", NAME: "world", EMPTY: "", DOLLAR: "$NAME" };
const expand = (text: string) => expandVariables(text, (name) => env[name]);

test.each([
  ["$NAME", "world"],
  ["Hello, $NAME!", "Hello, world!"],
  [`\${PATH}:/x`, "/usr/bin:/bin:/x"],
  ["$NAMES", ""],
  ["$NAME$NAME", "worldworld"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a step
  ["${NAME}s", "worlds"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a step
  ["${UNSET:-a}${EMPTY:-b}${EMPTY-c}${NAME:-d}", "abworld"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a step
  ["${NAME:+yes}${EMPTY:+no}${UNSET+no}", "yes"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a step
  ["${UNSET:-<${NAME}>}", "<world>"],
])("%s becomes %s", (text, expected) => {
  expect(expand(text)).toBe(expected);
});

test("values are not expanded again, and nothing is run or unquoted", () => {
  expect(expand("$DOLLAR")).toBe("$NAME");
  for (const text of ["$(id)", "`id`", "a \"b\" 'c'", "a\\nb\\\\", "line 1\nline 2", "costs $5", "$", "a$", "{}}"])
    expect(expand(text)).toBe(text);
  expect(expand("\\$NAME")).toBe("\\world");
});

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a step
test.each(["${", "${}", "${NAME", "${NAME%x}", "${!NAME}", "${NAME:-${}", "${1}"])("%s is refused", (text) => {
  expect(() => expand(text)).toThrow(BadSubstitution);
});

test("a text without a dollar sign stays as it is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      fc.pre(!text.includes("$"));
      expect(expand(text)).toBe(text);
      expect(variablesIn(text).size).toBe(0);
    }),
  );
});

test("every variable that is looked up was named before", () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom("$A", "$B_1", `\${A}`, `\${A:-\${B}}`, `\${A:+$C}`));
  fc.assert(
    fc.property(fc.array(piece), fc.dictionary(fc.constantFrom("A", "B", "C"), fc.string()), (pieces, values) => {
      const text = pieces.join("");
      let names: ReadonlySet<string>;
      try {
        names = variablesIn(text);
      } catch (error) {
        expect(error).toBeInstanceOf(BadSubstitution);
        return;
      }
      expandVariables(text, (name) => {
        expect(names).toContain(name);
        return values[name];
      });
    }),
  );
});
