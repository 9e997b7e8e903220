import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FramingError, readParts, TruncatedPartError } from "./read-parts.ts";

interface ReadPart {
  name: string | undefined;
  content: string;
}

async function* pieces(body: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (let index = 0; from < body.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    yield body.subarray(from, from + size);
    from += size;
  }
}

async function read(body: string | Buffer, sizes: readonly number[] = [1 << 20]): Promise<ReadPart[]> {
  const parts: ReadPart[] = [];
  for await (const part of readParts(pieces(Buffer.from(body as string, "latin1"), sizes), "b")) {
    const chunks: Buffer[] = [];
    for await (const chunk of part.content) chunks.push(chunk);
    parts.push({ name: part.parameters.get("name"), content: Buffer.concat(chunks).toString("latin1") });
  }
  return parts;
}

const part = (name: string, content: string) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`;

describe("readParts", () => {
  it("reads parts in order", async () => {
    expect(await read(`${part("x", "one")}${part("y", "")}--b--\r\n`)).toEqual([
      { name: "x", content: "one" },
      { name: "y", content: "" },
    ]);
  });

  it("skips a preamble and what follows the last boundary", async () => {
    expect(await read(`hello\r\n${part("x", "one")}--b--\r\nbye`)).toEqual([{ name: "x", content: "one" }]);
  });

  it("takes a longer word that begins like the boundary for content", async () => {
    expect(await read(`${part("x", "a\r\n--bb\r\n--b1")}--b--`)).toEqual([{ name: "x", content: "a\r\n--bb\r\n--b1" }]);
  });

  it("reads a part without headers and one of another disposition as nameless", async () => {
    const body = "--b\r\n\r\nplain\r\n--b\r\nContent-Disposition: attachment; name=x\r\n\r\nother\r\n--b--";
    expect(await read(body)).toEqual([
      { name: undefined, content: "plain" },
      { name: undefined, content: "other" },
    ]);
  });

  it("reads an empty body of boundaries only", async () => {
    expect(await read("--b--\r\n")).toEqual([]);
  });

  it.each(["", "nothing here", "--b", "--b\r\nContent-Disposition: form-data"])("refuses the framing of %j", async (body) => {
    await expect(read(body)).rejects.toThrow(FramingError);
  });

  it.each(["cont", "content\r\n--"])("tells a part that breaks off after %j", async (content) => {
    await expect(read(`--b\r\n\r\n${content}`)).rejects.toThrow(TruncatedPartError);
  });

  it("skips the content that nobody read", async () => {
    const names: (string | undefined)[] = [];
    for await (const { parameters } of readParts(pieces(Buffer.from(`${part("x", "one")}${part("y", "two")}--b--`), [3]), "b")) {
      names.push(parameters.get("name"));
    }
    expect(names).toEqual(["x", "y"]);
  });

  it("gives the same parts however the body is cut into pieces", async () => {
    const content = fc.string({ unit: fc.constantFrom("\r", "\n", "-", "b", "a", "\0", "\xff") });
    await fc.assert(
      fc.asyncProperty(
        fc.array(content, { maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        async (contents, sizes) => {
          fc.pre(contents.every((text) => !`\r\n${text}`.includes("\r\n--b")));
          const body = `${contents.map((text) => part("p", text)).join("")}--b--\r\n`;
          expect((await read(body, sizes)).map((each) => each.content)).toEqual(contents);
        },
      ),
      { numRuns: 300 },
    );
  });
});
