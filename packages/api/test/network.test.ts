// Changes of what a sandbox may reach, with a node that fails, is away, or is slow.

import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxDetailSchema } from "../src/http/schemas.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const EVERYTHING = "0.0.0.0/0";

describeOnEachDatabase("changing the network of a sandbox", { inSample: "sqlite", timing: { reconcileMs: 50 } }, (api) => {
  const put = (id: string, body: object) => api().call("PUT", `/sandboxes/${id}/network`, { body });
  const post = (id: string, what: string) => api().call("POST", `/sandboxes/${id}/${what}`, { body: {} });
  const shown = async (id: string) => {
    const { body } = await api().call("GET", `/sandboxes/${id}`);
    expect(Value.Errors(SandboxDetailSchema, body)).toEqual([]);
    return { network: body.network, internet: body.allowInternetAccess };
  };
  const onNode = (id: string) => {
    const { allowInternetAccess, allowOut, denyOut } = api().node.held.get(id)?.spec.options ?? {};
    return { allowInternetAccess, allowOut, denyOut };
  };
  const unsettled = () => api().store.sandboxes.changes.listUnsettled("node1", 10);

  it("replaces both lists, and internet access only when it is given", async () => {
    const id = await api().create({ allow_internet_access: false, network: { allowOut: ["1.1.1.1"] } });
    expect(await shown(id)).toEqual({ network: { allowOut: ["1.1.1.1"] }, internet: false });
    expect(await put(id, { denyOut: [EVERYTHING, "2001:db8::/32"] })).toMatchObject({ status: 204, body: undefined });
    expect(await shown(id)).toEqual({ network: { denyOut: [EVERYTHING, "2001:db8::/32"] }, internet: false });
    expect((await put(id, { allow_internet_access: true, allowOut: ["1.1.1.1/8"], denyOut: [EVERYTHING] })).status).toBe(204);
    expect(onNode(id)).toEqual({ allowInternetAccess: true, allowOut: ["1.1.1.1/8"], denyOut: [EVERYTHING] });
    expect((await put(id, {})).status).toBe(204);
    expect(await shown(id)).toEqual({ network: undefined, internet: true });
    expect(onNode(id)).toEqual({ allowInternetAccess: true, allowOut: [], denyOut: [] });
    expect(await unsettled()).toEqual([]);
  });

  it("takes names, wildcards and every name, and shows them as they were given", async () => {
    const network = { allowOut: ["API.example.com", "*.example.org", "*", "1.1.1.1"], denyOut: [EVERYTHING] };
    const id = await api().create({ network });
    expect((await shown(id)).network).toEqual(network);
    expect((await put(id, { allowOut: ["*.a.example"], denyOut: [EVERYTHING] })).status).toBe(204);
    expect(onNode(id)).toMatchObject({ allowOut: ["*.a.example"], denyOut: [EVERYTHING] });
  });

  it("tells no name servers, none and some apart", async () => {
    const id = await api().create({ network: { dnsServers: ["9.9.9.9"] } });
    const servers = () => api().node.held.get(id)?.spec.options?.dnsServers?.addresses;
    expect((await shown(id)).network).toEqual({ dnsServers: ["9.9.9.9"] });
    expect(servers()).toEqual(["9.9.9.9"]);
    expect((await put(id, { dnsServers: [] })).status).toBe(204);
    expect((await shown(id)).network).toEqual({ dnsServers: [] });
    expect(servers()).toEqual([]);
    expect((await put(id, {})).status).toBe(204);
    expect((await shown(id)).network).toBeUndefined();
    expect(servers()).toBeUndefined();
  });

  it("refuses what a create refuses, and changes nothing", async () => {
    const id = await api().create({ network: { denyOut: ["1.1.1.1"] } });
    for (const [body, status, message] of [
      [{ denyOut: ["0.0.0.0"] }, 400, "invalid denied CIDR 0.0.0.0"],
      [{ allowOut: ["x"] }, 400, "invalid allowed address x"],
      [
        { allowOut: ["a.example"] },
        400,
        "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.",
      ],
      [{ allowOut: ["a_.example"], denyOut: ["0.0.0.0/1"] }, 400, /^When specifying allowed domains/],
      [{ allowOut: ["*.*.example"], denyOut: [EVERYTHING] }, 400, "invalid allowed address *.*.example"],
      [{ dnsServers: ["dns.example"] }, 400, "invalid DNS server dns.example: it must be an IPv4 address"],
      [{ dnsServers: ["2001:db8::1"] }, 400, /^invalid DNS server/],
      [{ dnsServers: Array.from({ length: 11 }, () => "1.1.1.1") }, 400, /at most 10 DNS servers/],
      [{ denyOut: "1.1.1.1" }, 400, /^validation error/],
    ] as const) {
      const answer = await put(id, body);
      expect(answer).toMatchObject({ status, body: { message: message instanceof RegExp ? expect.stringMatching(message) : message } });
      const created = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", network: body } });
      expect(created.status).toBe(status);
    }
    expect((await put(id, { denyOut: ["2.2.2.2"], egressProxy: null, rules: {} })).status).toBe(204);
    expect((await put("iunknown", {})).status).toBe(404);
    expect(onNode(id).denyOut).toEqual(["2.2.2.2"]);
  });

  it("of a paused sandbox holds from its resume on; a fork has it as well", async () => {
    const id = await api().create();
    expect((await post(id, "pause")).status).toBe(204);
    expect((await put(id, { denyOut: ["1.1.1.1"] })).status).toBe(204);
    expect(await shown(id)).toMatchObject({ network: { denyOut: ["1.1.1.1"] } });
    expect(api().node.countCalls("setOptions", id)).toBe(0);
    const forks = (await post(id, "fork")).body as { sandbox: { sandboxID: string } }[];
    expect(onNode(forks[0]?.sandbox.sandboxID ?? "").denyOut).toEqual(["1.1.1.1"]);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`, { body: {} })).status).toBe(201);
    expect(onNode(id).denyOut).toEqual(["1.1.1.1"]);
  });

  it.each([Code.Internal, Code.Unavailable])(
    "that its node answers with %s leaves the former rules, and the node gets them",
    async (code) => {
      const id = await api().create({ network: { denyOut: ["1.1.1.1"] } });
      // The node has made the change, and its answer is lost.
      api().node.lost.set("setOptions", code);
      expect((await put(id, { denyOut: ["2.2.2.2"] })).status).toBe(code === Code.Unavailable ? 503 : 500);
      expect((await shown(id)).network).toEqual({ denyOut: ["1.1.1.1"] });
      api().node.lost.clear();
      await waitUntil("the node has the former rules", () => onNode(id).denyOut?.[0] === "1.1.1.1");
      // As a later change than the one that failed, whose call may still arrive.
      expect(api().node.held.get(id)?.spec.options?.changeNumber).toBe(2);
      await waitUntil("it is settled", async () => (await unsettled()).length === 0);
      expect((await put(id, { denyOut: ["3.3.3.3"] })).status).toBe(204);
    },
  );

  it("while the sandbox is paused at the same time holds after the pause", async () => {
    const id = await api().create();
    api().node.pause = "hang";
    const pausing = post(id, "pause");
    await waitUntil("the node pauses it", () => api().node.hanging === 1);
    const changing = put(id, { denyOut: ["1.1.1.1"] });
    api().node.pause = "ok";
    api().node.release();
    expect((await pausing).status).toBe(204);
    expect((await changing).status).toBe(204);
    expect((await shown(id)).network).toEqual({ denyOut: ["1.1.1.1"] });
    await waitUntil("it is settled", async () => (await unsettled()).length === 0);
  });

  it("whose node paused the sandbox first holds from its resume on", async () => {
    const id = await api().create();
    api().node.setOptions = "hang";
    const changing = put(id, { denyOut: ["1.1.1.1"] });
    await waitUntil("the node is asked", () => api().node.hanging === 1);
    // The pause has its turn after the change, which then finds no sandbox: as if the calls had arrived the other way round.
    api().node.held.delete(id);
    api().node.images.set("m0000000000000000000", { sandboxId: id, hasMemory: true, agentUnresponsive: false });
    api().node.kept.set(id, { imageId: "m0000000000000000000", reason: "exited" });
    await waitUntil("it is paused", async () => (await api().store.sandboxes.findState(id)) === "paused");
    api().node.setOptions = "ok";
    api().node.release();
    expect((await changing).status).toBe(204);
    expect((await shown(id)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  it("twice at once ends with one of the two, on the node as in the database", async () => {
    const id = await api().create();
    await using second = await api().createSecond({ ownerId: "api9" });
    await second.listen();
    const [one, two] = [["1.1.1.1"], ["2.2.2.2"]];
    const answers = await Promise.all([one, two, one, two].map((denyOut) => put(id, { denyOut })));
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 204, 204]);
    expect((await shown(id)).network).toEqual({ denyOut: onNode(id).denyOut });
    expect(await unsettled()).toEqual([]);
  });
});
