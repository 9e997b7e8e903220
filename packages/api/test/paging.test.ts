// Lists whose entries change between two pages: what stays is in the pages once, whatever comes and goes meanwhile.

import { expect, it } from "vitest";
import { addTemplate } from "./add-template.ts";
import { describeOnEachDatabase } from "./each-database.ts";

/** A list, and what changes it. */
interface Listed {
  readonly path: string;
  /** The field with the id of an entry. */
  readonly id: string;
  readonly add: () => Promise<string>;
  readonly remove: (id: string) => Promise<unknown>;
  /** Changes an entry, which stays in the list. */
  readonly change?: (id: string) => Promise<unknown>;
}

describeOnEachDatabase("pages of lists that change", { inSample: "both" }, (api) => {
  const call = (method: "GET" | "POST" | "DELETE" | "PATCH" | "PUT", path: string, body?: object) =>
    api().call(method, path, body === undefined ? {} : { body });
  const idOf = (field: string) => (answer: { status: number; text: string; body: Record<string, string> }) => {
    expect(answer.status, answer.text).toBe(201);
    return answer.body[field] ?? "";
  };
  let names = 0;
  const name = () => `n${++names}`;

  const sandboxes = (order: "asc" | "desc"): Listed => ({
    path: `/v2/sandboxes?order=${order}`,
    id: "sandboxID",
    add: () => api().create(),
    remove: (id) => call("DELETE", `/sandboxes/${id}`),
    change: (id) => call("POST", `/sandboxes/${id}/pause`),
  });
  const LISTS: Readonly<Record<string, () => Listed>> = {
    "sandboxes, oldest first": () => sandboxes("asc"),
    "sandboxes, newest first": () => sandboxes("desc"),
    templates: () => ({
      path: "/v2/templates?",
      id: "templateID",
      add: async () => (await addTemplate(api(), { alias: name() })).id,
      remove: (id) => call("DELETE", `/templates/${id}`),
      change: (id) => call("PATCH", `/v2/templates/${id}`, { public: true }),
    }),
    snapshots: () => ({
      path: "/snapshots?",
      id: "snapshotID",
      add: async () => idOf("snapshotID")(await call("POST", `/sandboxes/${await api().create()}/snapshots`, {})),
      remove: (id) => call("DELETE", `/templates/${id}`),
    }),
    secrets: () => ({
      path: "/secrets?",
      id: "secretID",
      add: async () => idOf("secretID")(await call("POST", "/secrets", { name: name(), value: "v" })),
      remove: (id) => call("DELETE", `/secrets/${id}`),
    }),
  };

  it.each(Object.keys(LISTS))("contain what stays once: %s", async (kind) => {
    const list = LISTS[kind]?.();
    if (!list) throw new Error(`there is no list ${kind}`);
    const stay: string[] = [];
    const go: string[] = [];
    for (let count = 0; count < 9; count += 1) (count % 3 === 1 ? go : stay).push(await list.add());
    const seen: string[] = [];
    let token: string | undefined;
    do {
      const page = await call("GET", `${list.path}&limit=2${token === undefined ? "" : `&nextToken=${encodeURIComponent(token)}`}`);
      expect(page.status, page.text).toBe(200);
      seen.push(...page.body.map((entry: Record<string, string>) => entry[list.id]));
      token = page.headers["x-next-token"] as string | undefined;
      // The last one of this page is what the next one begins after.
      const last = seen.at(-1) ?? "";
      const gone = go.includes(last) ? last : go[0];
      if (gone !== undefined) {
        await list.remove(gone);
        go.splice(go.indexOf(gone), 1);
      }
      if (seen.length < 12) await list.add();
      await list.change?.(stay[(seen.length / 2) % stay.length] ?? "");
    } while (token !== undefined);
    expect(seen.length).toBe(new Set(seen).size);
    expect(stay.filter((id) => !seen.includes(id))).toEqual([]);
  });

  it("move a sandbox that is resumed to the newest ones, so the oldest first miss none", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.push(await api().create());
    const [first = ""] = ids;
    const page = await call("GET", "/v2/sandboxes?order=asc&limit=1");
    await call("POST", `/sandboxes/${first}/pause`);
    await call("POST", `/sandboxes/${ids[1]}/pause`);
    expect((await call("POST", `/sandboxes/${ids[1]}/resume`, {})).status).toBe(201);
    const rest = await call("GET", `/v2/sandboxes?order=asc&limit=100&nextToken=${page.headers["x-next-token"]}`);
    const seen = [...page.body, ...rest.body].map(({ sandboxID }: { sandboxID: string }) => sandboxID);
    expect(seen).toEqual([first, ids[2], ids[3], ids[4], ids[1]]);
  });
});
