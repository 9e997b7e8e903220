import { createHash } from "node:crypto";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { Secret } from "@skerry/base";
import { type SignedFileRequest, signedText } from "@skerry/wire";
import { RouteService } from "@skerry/wire/control";
import { expect, it } from "vitest";
import { accessTokenOf } from "../src/keys/credential.ts";
import { MAX_CANDIDATES, SignerSearch } from "../src/traffic/signer-search.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const FILE: SignedFileRequest = { path: "/home/user/a b.txt", operation: "read", username: "", expiration: undefined };

const tokenOf = (sandboxId: string): string => accessTokenOf(new Secret("seed"), sandboxId);

function sign(file: SignedFileRequest, token: string): string {
  return `v1_${createHash("sha256").update(signedText(file, token)).digest("base64").replace(/=+$/, "")}`;
}

function asked(file: SignedFileRequest, signature: string) {
  const { expiration, ...rest } = file;
  return { ...rest, signature, ...(expiration === undefined ? {} : { expiration: BigInt(expiration) }) };
}

describeOnEachDatabase("signers of file URLs", { inSample: "sqlite" }, (api) => {
  async function find(file: SignedFileRequest, signature: string): Promise<string> {
    const client = createClient(
      RouteService,
      createRouterTransport(({ service }) => {
        service(RouteService, api().api.routeService);
      }),
    );
    return (await client.findSigner(asked(file, signature))).sandboxId;
  }

  it("the sandbox is found whose token made the signature, whatever was signed", async () => {
    const ids = [await api().create({}), await api().create({}), await api().create({})];
    const files: SignedFileRequest[] = [
      FILE,
      { ...FILE, path: "", operation: "write" },
      { ...FILE, username: "root" },
      { ...FILE, expiration: 1 },
      { ...FILE, expiration: 4_102_444_800 },
      { ...FILE, path: "a:read::b/ü\n" },
    ];
    for (const id of ids) for (const file of files) expect(await find(file, sign(file, tokenOf(id)))).toBe(id);
  });

  it("nothing is found for what was not signed like that", async () => {
    const id = await api().create({});
    const signature = sign({ ...FILE, expiration: 100 }, tokenOf(id));
    const changed: SignedFileRequest[] = [
      FILE,
      { ...FILE, expiration: 101 },
      { ...FILE, expiration: 100, path: "/etc/shadow" },
      { ...FILE, expiration: 100, operation: "write" },
      { ...FILE, expiration: 100, username: "root" },
    ];
    for (const file of changed) expect(await find(file, signature)).toBe("");
    for (const text of ["", "v1_", "garbage", `${signature}=`, signature.slice(0, -1)]) {
      expect(await find({ ...FILE, expiration: 100 }, text)).toBe("");
    }
    const long = { ...FILE, path: "x".repeat(4_097) };
    expect(await find(long, sign(long, tokenOf(id)))).toBe("");
    expect(await find(FILE, sign(FILE, tokenOf("iunknown")))).toBe("");
  });

  it("only sandboxes that run are found", async () => {
    const id = await api().create({});
    const signature = sign(FILE, tokenOf(id));
    expect(await find(FILE, signature)).toBe(id);
    expect((await api().call("POST", `/sandboxes/${id}/pause`, { body: {} })).status).toBe(204);
    expect(await find(FILE, signature)).toBe("");
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(201);
    expect(await find(FILE, signature)).toBe(id);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect(await find(FILE, signature)).toBe("");
  });
});

it("no more sandboxes are compared than the limit says, and a match changes nothing about that", async () => {
  const derived: string[] = [];
  const limits: number[] = [];
  const ids = Array.from({ length: 5 }, (_, index) => `i${index}`);
  const search = new SignerSearch({
    sandboxes: {
      listRoutedIds: async (_now, limit) => {
        limits.push(limit);
        return ids;
      },
    },
    accessTokenOf: (id) => {
      derived.push(id);
      return tokenOf(id);
    },
    clock: { now: () => 0 },
  });
  const of = (signature: string) => search.find({ ...asked(FILE, signature), $typeName: "skerry.control.v1.FindSignerRequest" });
  expect(await of(sign(FILE, tokenOf("i0")))).toBe("i0");
  expect(derived).toEqual(ids);
  expect(await of(sign(FILE, tokenOf("i4")))).toBe("i4");
  expect(await of("garbage")).toBeUndefined();
  expect([limits, derived]).toEqual([[MAX_CANDIDATES, MAX_CANDIDATES], ids]);
});
