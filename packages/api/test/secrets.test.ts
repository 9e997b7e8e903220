import { randomUUID } from "node:crypto";
import { openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, Secret } from "@skerry/base";
import { openStore } from "@skerry/store";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SecretSchema } from "../src/http/routes/secrets/secret-bodies.ts";
import { newEncryptionKey, parseEncryptionKeys } from "../src/index.ts";
import { SecretBox } from "../src/secrets/secret-box.ts";
import { SecretService } from "../src/secrets/secret-service.ts";
import type { CallOptions } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const VALUE = "plain-value-4711";
const WRONG = { code: 400, message: "Invalid secrets request" };
const MISSING = { code: 404, message: "Secret not found" };

describeOnEachDatabase("secrets", { inSample: "both" }, (api) => {
  const call = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await api().call(method, path, options);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.text).not.toContain(VALUE);
    return answer;
  };
  const create = async (name: string, body: object = {}, options: CallOptions = {}) => {
    const answer = await call("POST", "/secrets", { body: { name, value: VALUE, ...body }, ...options });
    expect(answer.status, answer.text).toBe(201);
    return answer.body;
  };
  const boxOf = (keys = api().encryptionKeys) => new SecretBox(keys);
  const serviceWith = (keys = api().encryptionKeys, logger = createLogger({ name: "t", level: "error", fd: openSync("/dev/null", "w") })) =>
    new SecretService({ secrets: api().store.secrets, box: boxOf(keys), clock: api().store.clock, logger, maxSecrets: 2 });
  /** What is stored, opened with these keys. */
  const stored = async (id: string, keys = api().encryptionKeys) => {
    const rows = await api().store.secrets.listOfOtherKeys("", { afterId: "", limit: 1000 });
    const row = rows.find((one) => one.id === id);
    if (!row) throw new Error("it is not stored");
    return { row, open: (about = ["secret", row.teamId, row.id, String(row.version)]) => boxOf(keys).open(row, about).reveal() };
  };

  it("are made, read, changed and deleted, by id and by name, and never show their values", async () => {
    const made = await create("My_Token", { metadata: { owner: "ci", "": undefined } });
    expect(Value.Errors(SecretSchema, made)).toEqual([]);
    expect(made).toEqual({
      secretID: expect.stringMatching(/^sec_[0-9a-z]{26}$/),
      name: "my_token",
      currentVersion: 1,
      metadata: { owner: "ci" },
      createdAt: made.updatedAt,
      updatedAt: expect.any(String),
    });
    for (const reference of [made.secretID, "my_token", "MY_TOKEN"]) {
      expect((await call("GET", `/secrets/${reference}`)).body).toEqual(made);
    }
    const second = await call("POST", "/secrets/my_token", { body: { value: `${VALUE}2` } });
    expect(second).toMatchObject({ status: 200, body: { ...made, currentVersion: 2, updatedAt: expect.any(String) } });
    const third = await call("POST", `/secrets/${made.secretID}`, { body: { value: `${VALUE}3`, metadata: {} } });
    expect(third.body).toMatchObject({ currentVersion: 3, metadata: {}, createdAt: made.createdAt });
    expect((await call("GET", "/secrets")).body).toEqual([third.body]);
    const { row, open } = await stored(made.secretID);
    expect(open()).toBe(`${VALUE}3`);
    expect(JSON.stringify(row)).not.toContain(VALUE);
    expect(await call("DELETE", `/secrets/${made.secretID}`)).toMatchObject({ status: 204, text: "" });
    for (const method of ["GET", "DELETE"]) expect((await call(method, "/secrets/my_token")).body).toEqual(MISSING);
    expect((await call("POST", `/secrets/${made.secretID}`, { body: { value: "x" } })).body).toEqual(MISSING);
    expect((await create("my_token")).currentVersion).toBe(1);
  });

  it("have one holder of a name in a team", async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => call("POST", "/secrets", { body: { name: "once", value: VALUE } })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409]);
    expect((await call("POST", "/secrets", { body: { name: "ONCE", value: VALUE } })).body).toEqual({
      code: 409,
      message: "Secret cannot be modified in its current state",
    });
    expect((await create("once", {}, { key: api().otherKey })).name).toBe("once");
  });

  it("count every change of several at once", async () => {
    const { secretID } = await create("counted");
    const change = (index: number) => call("POST", "/secrets/counted", { body: { value: `value ${index}` } });
    const answers = await Promise.all(Array.from({ length: 6 }, (_, index) => change(index)));
    expect(answers.map(({ body }) => body.currentVersion).toSorted()).toEqual([2, 3, 4, 5, 6, 7]);
    const last = answers.findIndex(({ body }) => body.currentVersion === 7);
    expect((await stored(secretID)).open()).toBe(`value ${last}`);
  });

  it("are listed newest first, in pages", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const made = [];
    for (const name of names) made.push(await create(name));
    const listed: object[] = [];
    let token: string | undefined;
    do {
      const answer = await call("GET", `/secrets?limit=2${token === undefined ? "" : `&nextToken=${token}`}`);
      expect(answer.body.length).toBeLessThanOrEqual(2);
      listed.push(...answer.body);
      token = answer.headers["x-next-token"] as string | undefined;
    } while (token !== undefined);
    const order = (secret: { createdAt: string; secretID: string }) => secret.createdAt;
    expect(listed).toHaveLength(5);
    expect(new Set(listed.map((secret) => JSON.stringify(secret)))).toEqual(new Set(made.map((secret) => JSON.stringify(secret))));
    const times = (listed as { createdAt: string; secretID: string }[]).map(order);
    expect(times).toEqual(times.toSorted().toReversed());
    for (const query of ["limit=0", "limit=101", "limit=x", "nextToken=x"])
      expect((await call("GET", `/secrets?${query}`)).body).toEqual(WRONG);
  });

  it("refuse wrong requests with one text, which repeats nothing of them", async () => {
    await create("fine");
    const name = "other";
    const wrong: unknown[] = [undefined, [], {}, { name }, { value: VALUE }, { name, value: "" }, { name, value: 1 }];
    for (const bad of ["", "a b", "sec_x", "SEC_X", "a.b", "x".repeat(129), "\0", "ä", 1]) wrong.push({ name: bad, value: VALUE });
    wrong.push({ name, value: "\ud800" }, { name, value: "x".repeat(65_537) }, { name, value: "ä".repeat(32_769) });
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, ""]));
    const large = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`k${index}`, "x".repeat(1024)]));
    for (const metadata of [
      many,
      large,
      { a: "ä".repeat(513) },
      { a: 1 },
      { a: "x".repeat(1025) },
      { a: "\0" },
      { "": "x" },
      { ["k".repeat(129)]: "" },
      [],
      "x",
    ]) {
      wrong.push({ name, value: VALUE, metadata });
    }
    for (const body of wrong) expect((await call("POST", "/secrets", { body })).body, JSON.stringify(body)?.slice(0, 60)).toEqual(WRONG);
    expect((await call("POST", "/secrets", { raw: `{"name":"x","value":"${VALUE}` })).body).toEqual(WRONG);
    expect((await call("POST", "/secrets/fine", { body: { value: "" } })).body).toEqual(WRONG);
    for (const path of ["a%20b", "%00", "a.b"]) expect((await call("GET", `/secrets/${path}`)).body).toEqual(WRONG);
    for (const path of ["nope", "sec_x", `sec_0${"0".repeat(25)}`]) expect((await call("GET", `/secrets/${path}`)).body).toEqual(MISSING);
    for (const [method, path] of [
      ["GET", "/secrets"],
      ["POST", "/secrets"],
      ["GET", "/secrets/fine"],
      ["DELETE", "/secrets/fine"],
    ] as const) {
      const answer = await call(method, path, { key: null });
      expect(answer.body).toEqual({ code: 401, message: "You are not authenticated" });
    }
    await create("largest", { value: "x".repeat(65_536), metadata: { a: "x".repeat(1024) } });
    expect((await call("GET", "/secrets")).body).toHaveLength(2);
  });

  it("belong to one team", async () => {
    const made = await create("mine");
    const key = { key: api().otherKey };
    for (const reference of [made.secretID, "mine"]) {
      expect((await call("GET", `/secrets/${reference}`, key)).body).toEqual(MISSING);
      expect((await call("POST", `/secrets/${reference}`, { ...key, body: { value: "x" } })).body).toEqual(MISSING);
      expect((await call("DELETE", `/secrets/${reference}`, key)).body).toEqual(MISSING);
    }
    expect((await call("GET", "/secrets", key)).body).toEqual([]);
    expect((await call("GET", "/secrets/mine")).body).toEqual(made);
  });

  it("are limited in number", async () => {
    const limited = serviceWith();
    const change = { value: new Secret(VALUE), metadata: undefined };
    const all = await Promise.allSettled(["a", "b", "c", "d"].map((name) => limited.create(api().teamId, name, change)));
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    for (const one of all) {
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "limit_reached", detailCode: "secret_limit_reached" });
    }
    expect((await call("GET", "/secrets")).body).toHaveLength(2);
  });

  it("are bound to their team, id and version, so that a row can't take the place of another", async () => {
    const [first, second] = [await create("first", { value: "one" }), await create("second", { value: "two" })];
    const [one, two] = [await stored(first.secretID), await stored(second.secretID)];
    expect(one.open()).toBe("one");
    await api().store.secrets.reseal(one.row, { sealed: two.row.sealed, keyId: two.row.keyId });
    expect((await stored(first.secretID)).open).toThrow("belongs to something else");
    for (const about of [
      ["secret", randomUUID(), second.secretID, "1"],
      ["secret", api().teamId, second.secretID, "2"],
    ]) {
      expect(() => two.open(about)).toThrow("belongs to something else");
    }
  });

  it("are encrypted again with a new key at the next start, and the old key is not needed from then on", async () => {
    const old = api().encryptionKeys;
    const made = await Promise.all(Array.from({ length: 5 }, (_, index) => create(`s${index}`, { value: `value ${index}` })));
    const rotated = [...parseEncryptionKeys(newEncryptionKey(), "keys"), ...old];
    const [newest] = rotated;
    api().encryptionKeys = rotated;
    await using restarted = await api().createSecond();
    await restarted.listen();
    api().encryptionKeys = newest ? [newest] : [];
    for (const [index, { secretID }] of made.entries()) {
      const { row, open } = await stored(secretID);
      expect(row.keyId).toBe(boxOf().keyId);
      expect(open()).toBe(`value ${index}`);
    }
    expect((await call("GET", "/secrets")).body).toHaveLength(5);
    expect(await serviceWith(rotated).reseal()).toEqual({ resealed: 0, left: 0 });
  });

  it("whose key is lost are reported and left alone, and can get a new value", async () => {
    const made = await create("orphan");
    const folder = await mkdtemp(join(tmpdir(), "skerry-secrets-"));
    const log = join(folder, "log");
    const fresh = parseEncryptionKeys(newEncryptionKey(), "keys");
    const vault = serviceWith(fresh, createLogger({ name: "t", level: "info", fd: openSync(log, "w") }));
    const before = (await stored(made.secretID)).row.sealed;
    expect(await vault.reseal()).toEqual({ resealed: 0, left: 1 });
    expect((await stored(made.secretID)).row.sealed).toBe(before);
    expect(readFileSync(log, "utf8")).toContain(made.secretID);
    expect(readFileSync(log, "utf8")).not.toContain(VALUE);
    await vault.update(api().teamId, { id: made.secretID }, { value: new Secret("again"), metadata: undefined });
    expect((await stored(made.secretID, fresh)).open()).toBe("again");
    expect(await vault.reseal()).toEqual({ resealed: 0, left: 0 });
    await rm(folder, { recursive: true });
  });

  it("are encrypted again by several processes at once, while values change", async () => {
    const { secretID } = await create("busy");
    await create("idle");
    const rotated = [...parseEncryptionKeys(newEncryptionKey(), "keys"), ...api().encryptionKeys];
    await using other = await openStore(api().databaseUrl);
    const second = new SecretService({
      secrets: other.secrets,
      box: boxOf(rotated),
      clock: other.clock,
      logger: createLogger({ name: "t", level: "error" }),
    });
    const [first] = await Promise.all([
      serviceWith(rotated).reseal(),
      second.reseal(),
      second.update(api().teamId, { id: secretID }, { value: new Secret("newest"), metadata: undefined }),
    ]);
    expect(first.left).toBe(0);
    expect((await stored(secretID, rotated)).open()).toBe("newest");
  });

  it("do not get into sandboxes", async () => {
    await create("hidden", { metadata: { for: "tests" } });
    const id = await api().create();
    const spec = api().node.held.get(id)?.spec;
    expect(JSON.stringify(spec, (_key, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(VALUE);
    expect((await api().call("GET", `/sandboxes/${id}`)).text).not.toContain("hidden");
  });
});
