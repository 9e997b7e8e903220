import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LightHeaders } from "./light-headers.ts";

type Operation = (headers: Headers | LightHeaders) => void;

// Node's own class is the reference: the same operations must give the same fields.
describe("light headers behave like the platform's", () => {
  it.each<[string, ConstructorParameters<typeof LightHeaders>[0], Operation]>([
    ["empty", undefined, () => {}],
    ["from a record", { B: "2", a: "1" }, () => {}],
    [
      "from pairs, with repeated names",
      [
        ["X-A", "1"],
        ["x-a", "2"],
      ],
      () => {},
    ],
    ["append", { a: "1" }, (headers) => headers.append("A", " 2\t")],
    [
      "set over several",
      [
        ["a", "1"],
        ["a", "2"],
      ],
      (headers) => headers.set("A", "3"),
    ],
    ["delete", { a: "1", b: "2" }, (headers) => headers.delete("A")],
    [
      "cookies stay apart",
      [
        ["Set-Cookie", "a=1"],
        ["set-cookie", "b=2"],
      ],
      (headers) => headers.append("x", "y"),
    ],
    ["empty values", { a: "" }, (headers) => headers.append("a", "")],
  ])("%s", (_what, init, operate) => {
    const light = new LightHeaders(init);
    const native = new Headers(init as ConstructorParameters<typeof Headers>[0]);
    for (const headers of [light, native]) operate(headers);
    expect([...light]).toEqual([...native]);
    expect([...light.keys()]).toEqual([...native.keys()]);
    expect([...light.values()]).toEqual([...native.values()]);
    expect(light.getSetCookie()).toEqual(native.getSetCookie());
    for (const name of ["a", "A", "x-a", "absent", "set-cookie"]) {
      expect(light.get(name)).toBe(native.get(name));
      expect(light.has(name)).toBe(native.has(name));
    }
    const visited: [string, string][] = [];
    light.forEach((value, name) => {
      visited.push([name, value]);
    });
    expect(visited).toEqual([...native]);
  });

  it("is made from another one", () => {
    expect([...new LightHeaders(new LightHeaders({ a: "1" }))]).toEqual([["a", "1"]]);
  });
});

it("keeps Node's HTTP client out of the process", () => {
  const program = `
    const { installLightHeaders } = await import(${JSON.stringify(join(import.meta.dirname, "light-headers.ts"))});
    installLightHeaders();
    const headers = new Headers({ a: "1" });
    console.log(headers.get("a"), process.moduleLoadList.some((name) => name.endsWith("deps/undici/undici")));`;
  expect(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" })).toBe("1 false\n");
});
