// The official client with the HTTP API: what the client sends, and how it reads the answers.

import { AuthenticationError, NotFoundError, Sandbox, SandboxNotFoundError, Secret, SecretNotFoundError, Template } from "e2b";
import { expect, it } from "vitest";
import { addTemplate } from "./add-template.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("the official client", { inSample: "sqlite" }, (api) => {
  const connection = () => ({ apiUrl: api().url, apiKey: api().apiKey, sandboxUrl: "http://127.0.0.1:9", retries: 0 });

  it("creates, reads, extends and kills a sandbox", async () => {
    const sandbox = await Sandbox.create("base", { ...connection(), metadata: { a: "b" }, envs: { X: "1" }, timeoutMs: 60_000 });
    const info = await sandbox.getInfo();
    expect(info).toMatchObject({
      sandboxId: sandbox.sandboxId,
      name: "base",
      metadata: { a: "b" },
      state: "running",
      envdVersion: "0.6.4",
    });
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBe(60_000);
    await sandbox.setTimeout(120_000);
    expect((await sandbox.getInfo()).endAt.getTime()).toBeGreaterThan(info.endAt.getTime());
    const again = await Sandbox.connect(sandbox.sandboxId, connection());
    expect(again.sandboxId).toBe(sandbox.sandboxId);
    expect(await sandbox.kill()).toBe(true);
    expect(await Sandbox.kill(sandbox.sandboxId, connection())).toBe(false);
    await expect(sandbox.getInfo()).rejects.toBeInstanceOf(SandboxNotFoundError);
    await expect(Sandbox.connect(sandbox.sandboxId, connection())).rejects.toBeInstanceOf(SandboxNotFoundError);
  });

  it("lists by metadata of any kind, page by page", async () => {
    const odd = { "a&b=c %": "100% + 1/2", ключ: '🎉 "quoted"' };
    const wanted = await Sandbox.create("base", { ...connection(), metadata: odd });
    await Sandbox.create("base", { ...connection(), metadata: { other: "1" } });
    const found = await Sandbox.list({ ...connection(), query: { metadata: odd, state: ["running"] } }).nextItems();
    expect(found.map(({ sandboxId }) => sandboxId)).toEqual([wanted.sandboxId]);
    const pages = Sandbox.list({ ...connection(), limit: 1 });
    const seen: string[] = [];
    while (pages.hasNext) seen.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId));
    expect(seen).toHaveLength(2);
  });

  it("is told what went wrong in its own words", async () => {
    const wrongKey = { ...connection(), apiKey: "e2b_0000" };
    await expect(Sandbox.create("base", wrongKey)).rejects.toBeInstanceOf(AuthenticationError);
    await expect(Sandbox.create("nope", connection())).rejects.toThrow("template 'nope' not found");
    await expect(Sandbox.create("base", { ...connection(), timeoutMs: 0 })).rejects.toThrow("Timeout must be greater than 0");
    await expect(Sandbox.getInfo("iunknown", connection())).rejects.toBeInstanceOf(NotFoundError);
  });

  it("asks for names, and assigns, lists and removes tags", async () => {
    const { builds } = await addTemplate(api(), { alias: "web", builds: [{}, { tag: "v1" }] });
    expect(await Template.exists("web", connection())).toBe(true);
    expect(await Template.exists("default/web:v1", connection())).toBe(true);
    expect(await Template.exists("web:v9", connection())).toBe(false);
    expect(await Template.exists("nope", connection())).toBe(false);
    // A name that another team has for all teams.
    expect(await Template.exists("base", { ...connection(), apiKey: api().otherKey })).toBe(true);
    const assigned = await Template.assignTags("web:v1", ["production", "stable"], connection());
    expect(assigned).toEqual({ buildId: builds[1]?.id, tags: ["production", "stable"] });
    const tags = async () => (await Template.getTags("default/web", connection())).map(({ tag }) => tag);
    expect(await tags()).toEqual(["default", "production", "stable", "v1"]);
    await Template.removeTags("web", ["production", "stable"], connection());
    await Template.removeTags("web", "v1", connection());
    expect(await tags()).toEqual(["default"]);
    await expect(Template.assignTags("web:v1", "v2", connection())).rejects.toThrow("Template 'web' with tag 'v1' not found");
    await expect(Template.removeTags("web", "default", connection())).rejects.toThrow("Cannot delete the 'default' tag");
    await expect(Template.getTags("nope", connection())).rejects.toThrow("template 'nope' not found");
    for (const bad of ["web:", ":bad", "web:a:b"]) await expect(Template.assignTags(bad, "v1", connection())).rejects.toThrow("400");
  });

  it("keeps secrets", async () => {
    const made = await Secret.create("Deploy-Key", "value-1", { ...connection(), metadata: { owner: "ci" } });
    expect(made).toMatchObject({ name: "deploy-key", metadata: { owner: "ci" } });
    expect(await Secret.update("deploy-key", "value-2", connection())).toMatchObject({ metadata: { owner: "ci" } });
    expect(await Secret.getInfo("deploy-key", connection())).toMatchObject({ version: 2 });
    await Secret.create("other", "value-3", connection());
    const pages = Secret.list({ ...connection(), limit: 1 });
    const seen: string[] = [];
    while (pages.hasNext) seen.push(...(await pages.nextItems()).map(({ name }) => name));
    expect(seen.toSorted()).toEqual(["deploy-key", "other"]);
    expect(await Secret.exists("deploy-key", connection())).toBe(true);
    expect(await Secret.destroy("deploy-key", connection())).toBe(true);
    expect(await Secret.destroy("deploy-key", connection())).toBe(false);
    expect(await Secret.exists("deploy-key", connection())).toBe(false);
    await expect(Secret.getInfo("deploy-key", connection())).rejects.toBeInstanceOf(SecretNotFoundError);
  });
});
