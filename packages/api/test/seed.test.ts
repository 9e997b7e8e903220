import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret, systemClock } from "@skerry/base";
import { afterEach, beforeEach, expect, it } from "vitest";
import { seedIdentity, seedTemplates } from "../src/index.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("seeding", { inSample: "sqlite" }, (api) => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "skerry-templates-"));
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  const template = {
    templateId: "tplseeded",
    alias: "seeded",
    buildId: randomUUID(),
    layers: [`sha256:${"1".repeat(64)}`, `sha256:${"2".repeat(64)}`],
    cpuCount: 1,
    memoryMB: 256,
    diskSizeMB: 0,
    defaultUser: "root",
    defaultWorkdir: "/srv",
  };
  const write = (value: unknown, name = "seeded.json") => writeFile(join(folder, name), JSON.stringify(value));
  const seed = () => seedTemplates(api().store, folder, { teamId: api().teamId, clock: systemClock });
  const makesSandboxFrom = async () => {
    const id = await api().create({ templateID: "seeded" }, { key: api().otherKey });
    return api().node.held.get(id)?.spec;
  };

  it("makes templates that every team can use", async () => {
    await write(template);
    await seed();
    expect(await makesSandboxFrom()).toMatchObject({
      buildId: template.buildId,
      layers: template.layers,
      cpuCount: 1,
      defaultUser: "root",
    });
  });

  it("changes nothing for the same file, and serves another build", async () => {
    await write(template);
    await seed();
    await seed();
    expect((await api().store.templateLists.listOfTeam(api().teamId, 9)).find(({ template: t }) => t.id === "tplseeded")?.buildCount).toBe(
      1,
    );
    const newer = { ...template, buildId: randomUUID(), memoryMB: 512 };
    await write(newer);
    await seed();
    expect(await makesSandboxFrom()).toMatchObject({ buildId: newer.buildId, memoryMb: 512 });
  });

  it("does without a folder, and refuses a file that is wrong", async () => {
    await seedTemplates(api().store, join(folder, "missing"), { teamId: api().teamId, clock: systemClock });
    for (const wrong of ["x", { ...template, layers: [] }, { ...template, alias: "A B" }, { ...template, cpuCount: "2" }]) {
      await write(wrong);
      await expect(seed()).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining("seeded.json") });
    }
  });

  it("replaces a key that was changed in the secrets", async () => {
    const apiKey = new Secret(`e2b_${"ab".repeat(20)}`);
    const secrets = { teamId: api().teamId, userId: randomUUID(), apiKey, accessToken: new Secret(api().accessToken) };
    await seedIdentity(api().store, secrets, systemClock);
    await seedIdentity(api().store, secrets, systemClock);
    expect((await api().call("GET", "/v2/sandboxes", { key: apiKey.reveal() })).status).toBe(200);
    expect((await api().call("GET", "/v2/sandboxes")).status).toBe(401);
    const other = { ...secrets, teamId: randomUUID() };
    await expect(seedIdentity(api().store, other, systemClock)).rejects.toMatchObject({ code: "config_invalid" });
  });
});
