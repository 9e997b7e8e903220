import { AGENT_PORT } from "@skerry/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type RequestHead, routeRequest } from "./route-request.ts";

const PATH_HOST = "paths.example.com";
const IDS = ["iaaaaaaaaaaaaaaaaaaaa", "ibbbbbbbbbbbbbbbbbbbb"];
const TOKEN = `lnk_${"a".repeat(20)}.${"s".repeat(43)}`;

function route(url: string, rawHeaders: readonly string[]) {
  const head: RequestHead = { method: "GET", url, rawHeaders, clientAddress: () => "192.0.2.1", isSecure: () => false };
  return routeRequest(head, PATH_HOST);
}

const id = fc.constantFrom(...IDS, ...IDS, ...IDS, "Iaaaaaaaaaaaaaaaaaaaa", "..", "%69a", "", "a-b");
const port = fc.constantFrom("3000", "3000", "3000", "80", "80", String(AGENT_PORT), "03000", "0", "65536", "+80", "80,3000", "%33", "");
const host = fc.oneof(
  fc.tuple(port, id).map(([number, name]) => `${number}-${name}.example.com`),
  fc.constantFrom(
    PATH_HOST,
    PATH_HOST,
    "Paths.Example.com:4681",
    `${PATH_HOST}.`,
    `x.${PATH_HOST}`,
    `${PATH_HOST}@x`,
    "localhost",
    "",
    "[::1]:80",
  ),
);
const hosts = fc.oneof(fc.tuple(host), fc.tuple(host), fc.array(host, { maxLength: 2 }));
const rest = fc
  .array(fc.constantFrom("a", "..", ".", "%2e", "%2f", "//", "\\", "?", "#", "&", `skerry-link=${TOKEN}`, "skerry-link=x", "/", ";"), {
    maxLength: 6,
  })
  .map((parts) => parts.join(""));
const url = fc.oneof(
  fc.tuple(id, port, rest).map(([name, number, tail]) => `/s/${name}/${number}/${tail}`),
  rest.map((tail) => `/${tail}`),
  fc.tuple(host, id, port).map(([name, sandbox, number]) => `http://${name}/s/${sandbox}/${number}/`),
  fc.constantFrom("*", "", "//", `//evil/s/${IDS[0]}/3000/`, `/S/${IDS[0]}/3000/`),
);
const fields = fc.oneof(
  fc.tuple(id, port).map(([name, number]) => [
    ["E2b-Sandbox-Id", name],
    ["E2b-Sandbox-Port", number],
  ]),
  id.map((name) => [["E2b-Sandbox-Id", name]]),
  fc.constantFrom(
    [["Skerry-Link-Token", TOKEN]],
    [["Cookie", `skerry-link=${TOKEN}`]],
    [["X-Forwarded-Host", PATH_HOST]],
    [["X-Forwarded-Prefix", "/s/x/1"]],
  ),
);

test("a request leads where exactly one of host, headers and path says, whatever the others and a link say", () => {
  let routed = { host: 0, headers: 0, path: 0, link: 0 };
  fc.assert(
    fc.property(hosts, fc.array(fields, { maxLength: 2 }), url, (names, groups, target) => {
      const more = groups.flat();
      const raw = [...names.flatMap((name) => ["Host", name]), ...more.flat()];
      const routing = route(target, raw);
      if (routing.kind !== "routed") return;
      const named = (name: string) => more.filter(([field]) => field === name).map(([, value]) => value);
      const [ids, ports] = [named("E2b-Sandbox-Id"), named("E2b-Sandbox-Port")];
      const name = (names[0] ?? "").toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");
      const label = /^(\d+)-([a-z0-9]+)(?:-[^.]*)?\./.exec(name);
      const { sandboxId, port: number } = routing.target;
      expect(names.length).toBeLessThan(2);
      expect([...IDS, "a"]).toContain(sandboxId);
      if (name === PATH_HOST) {
        routed = { ...routed, path: routed.path + 1 };
        expect([ids, ports]).toEqual([[], []]);
        expect(number).not.toBe(AGENT_PORT);
        expect(routing.prefix).toBe(`/s/${sandboxId}/${number}`);
        expect(target.replace(/^http:\/\/[^/]*/, "").startsWith(`${routing.prefix}/`)).toBe(true);
        expect(routing.path).not.toMatch(/^[^?]*\/\.\.?(\/|$)/);
      } else {
        expect(routing.prefix).toBe("");
        if (label) {
          routed = { ...routed, host: routed.host + 1 };
          expect([sandboxId, String(number)]).toEqual([label[2], label[1]]);
        } else {
          routed = { ...routed, headers: routed.headers + 1 };
          expect([[sandboxId.split("-")[0]], [String(number)]]).toEqual([ids.map((text) => text?.split("-")[0]), ports]);
        }
      }
      if (routing.link) routed = { ...routed, link: routed.link + 1 };
      if (number === AGENT_PORT) expect(routing.link).toBeUndefined();
      else expect(routing.path).not.toMatch(/^[^?]*\?(.*&)?skerry-link(=|&|$)/);
    }),
    { numRuns: 20_000, seed: 20_261_124 },
  );
  for (const [form, count] of Object.entries(routed)) expect({ form, isOften: count > 50, count }).toMatchObject({ isOften: true });
});

test("an attempt on the agent by path names whose agent it was", () => {
  const [sandboxId] = IDS;
  const routing = route(`/s/${sandboxId}/${AGENT_PORT}/files`, ["Host", PATH_HOST]);
  expect(routing).toMatchObject({
    kind: "refused",
    refusal: { status: 400 },
    trace: "agent by path",
    named: { sandboxId, port: AGENT_PORT },
  });
});
