import { AGENT_PORT } from "@skerry/wire";
import { expect, test } from "vitest";
import { maskedHost } from "./masked-host.ts";

const masked = (hostTemplate: string | undefined, port: number) =>
  maskedHost(hostTemplate === undefined ? undefined : { hostTemplate, tlsPorts: new Set() }, { sandboxId: "iabc" as never, port });

test("the placeholder is the port of the request, wherever and however often it is written", () => {
  expect(masked("localhost:${PORT}", 3000)).toBe("localhost:3000");
  expect(masked("p${PORT}.example.com:${PORT}", 80)).toBe("p80.example.com:80");
  expect(masked("app.example.com", 80)).toBe("app.example.com");
});

test("without a template, and on the agent's port, the Host stays as it is", () => {
  expect(masked(undefined, 3000)).toBeUndefined();
  expect(maskedHost({ tlsPorts: new Set() }, { sandboxId: "iabc" as never, port: 3000 })).toBeUndefined();
  expect(masked("localhost", AGENT_PORT)).toBeUndefined();
});
