// Calls every operation of the served document with credentials that must not do. A new operation is tested as soon as it is in the document.

import { randomUUID } from "node:crypto";
import { Secret } from "@skerry/base";
import { expect, it } from "vitest";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf } from "../src/keys/credential.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { documentOf, hex, isPublic, operationsOf, ownedBy, pathOf, sample, send, stateOf, takes } from "./every-operation.ts";

describeOnEachDatabase("every operation", { inSample: "both" }, (api) => {
  it("refuses missing, wrong, deleted, expired and unsuitable credentials", async () => {
    const document = await documentOf(api());
    const owned = await ownedBy(api());
    const before = await stateOf(api(), owned);
    const { identity, keys } = api().store;
    const [deleted, expired, deletedToken, expiredToken] = [hex(), hex(), hex(), hex()];
    const now = api().store.clock.now();
    const member = await identity.findFirstMember(api().teamId);
    const userId = member?.userId ?? "";
    const keyOf = (value: string) => credentialOf(new Secret(API_KEY_PREFIX + value), { prefix: API_KEY_PREFIX, name: "k", now });
    const tokenOf = (value: string) =>
      credentialOf(new Secret(ACCESS_TOKEN_PREFIX + value), { prefix: ACCESS_TOKEN_PREFIX, name: "t", now });
    const gone = { key: keyOf(deleted), token: tokenOf(deletedToken) };
    await identity.addApiKey({ ...gone.key, teamId: api().teamId });
    await identity.addAccessToken({ ...gone.token, userId });
    await keys.removeKey(api().teamId, gone.key.id, now);
    await keys.removeToken(userId, gone.token.id, now);
    await identity.addApiKey({ ...keyOf(expired), teamId: api().teamId, expiresAt: now - 1 });
    await identity.addAccessToken({ ...tokenOf(expiredToken), userId, expiresAt: now - 1 });
    const refused: Record<string, string>[] = [
      {},
      ...["x", "e2b_", "e2b_zz", `e2b_${hex()}`, `e2b_${deleted}`, `e2b_${expired}`, api().accessToken].map((key) => ({
        "X-API-Key": key,
      })),
      ...["x", "sk_e2b_zz", `sk_e2b_${hex()}`, `sk_e2b_${deletedToken}`, `sk_e2b_${expiredToken}`, api().apiKey].map((token) => ({
        Authorization: `Bearer ${token}`,
      })),
      { "X-Admin-Token": "x", "X-Team-ID": api().teamId },
      { "X-Team-ID": api().teamId },
    ];
    const operations = operationsOf(document).filter((operation) => !isPublic(operation));
    expect(operations.length).toBeGreaterThan(50);
    for (const operation of operations) {
      // Credentials that are right, for another kind of operation.
      const unsuitable = [
        ...(takes(operation, "apiKey") ? [] : [{ "X-API-Key": api().apiKey }]),
        ...(takes(operation, "accessToken") ? [] : [{ Authorization: `Bearer ${api().accessToken}` }]),
      ];
      const answers = await Promise.all([...refused, ...unsuitable].map((headers) => send(api(), operation, { owned, document, headers })));
      for (const { body } of answers) {
        expect({ operation: operation.operationId, ...body }).toEqual({
          operation: operation.operationId,
          code: 401,
          message: expect.any(String),
        });
      }
    }
    const state = (await stateOf(api(), owned)) as { keys: { name: string }[] };
    expect({ ...state, keys: state.keys.filter(({ name }) => name !== "k") }).toEqual(before);
  });

  it("hides everything of one team from another, and changes nothing of it", async () => {
    const document = await documentOf(api());
    const owned = await ownedBy(api());
    const before = await stateOf(api(), owned);
    const held = [...api().node.held.keys()];
    const stranger = ACCESS_TOKEN_PREFIX + hex();
    const { identity } = api().store;
    const now = api().store.clock.now();
    const other = await identity.findTeamBySlug("other");
    const userId = randomUUID();
    await identity.putUser({ id: userId, name: "Stranger", createdAt: now });
    await identity.putMembership({ teamId: other?.id ?? "", userId, isDefault: true });
    const token = credentialOf(new Secret(stranger), { prefix: ACCESS_TOKEN_PREFIX, name: "theirs", now });
    await identity.addAccessToken({ ...token, userId });
    const callers: Record<string, string>[] = [
      { "X-API-Key": api().otherKey },
      { Authorization: `Bearer ${stranger}` },
      { Authorization: `Bearer ${stranger}`, "X-Team-ID": api().teamId },
      { "X-Admin-Token": api().adminToken, "X-Team-ID": other?.id ?? "" },
    ];
    const unknown = { ...owned, sandboxID: `i${"0".repeat(20)}`, templateID: "0".repeat(20), teamID: randomUUID() };
    // What any answer would betray. The ids that a request names may be repeated to it.
    const markers = [
      "metadata-marker",
      "paused-marker",
      "snapshot-marker",
      "key-marker",
      "link-marker",
      "member-marker",
      "invited@marker",
      "webhook-marker",
      "volume-marker",
      ...Object.values(owned).filter((id) => id.length > 15),
    ];
    // The team's own audit log tells what its callers asked for, with the ids that they named.
    let named = "";
    for (const operation of operationsOf(document)) {
      const isForTheOperator = operation.security.every((needed) => Object.keys(needed).join() === "admin");
      if (isPublic(operation) || isForTheOperator) continue;
      for (const headers of callers) {
        // The operator may do this for any team.
        if (takes(operation, "admin") && headers["X-Admin-Token"]) continue;
        const about = `${operation.operationId} ${Object.keys(headers)}`;
        const answer = await send(api(), operation, { owned, document, headers });
        const schema = operation.requestBody?.content["application/json"].schema;
        const sent = pathOf(operation, owned) + JSON.stringify(schema ? sample(document, schema, owned) : "");
        named += decodeURIComponent(sent);
        const own = operation.path.startsWith("/audit") ? named : decodeURIComponent(sent);
        const betrayed = markers.filter((marker) => !own.includes(marker) && answer.text.includes(marker));
        expect({ about, betrayed }).toEqual({ about, betrayed: [] });
        if (!operation.path.includes("{") || operation.summary.startsWith("Not built yet")) continue;
        // Some lists are empty for what does not exist. So they must be for what belongs to another team.
        const missing = answer.status === 200 ? await send(api(), operation, { owned: unknown, document, headers }) : undefined;
        if (missing && operation.method === "GET") expect({ about, text: answer.text }).toEqual({ about, text: missing.text });
        else expect({ about, status: answer.status, text: answer.text }).toMatchObject({ about, status: expect.toSatisfy(isRefusal) });
      }
    }
    expect(await stateOf(api(), owned)).toEqual(before);
    for (const id of held) expect(api().node.held.has(id)).toBe(true);
  });
});

const isRefusal = (status: number) => [400, 401, 403, 404].includes(status);
