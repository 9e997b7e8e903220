// What a volume holds, and what was begun with it, survives the end of every process of the platform.

import { startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox, Volume } from "e2b";
import { expect, it } from "vitest";
import { clientOf } from "../e2e/client.ts";

it.each(runtimesFor("crashes with volumes"))(
  "kill -9 of everything loses nothing of a volume that was confirmed, on %s",
  async (runtime) => {
    await using platform = await startPlatform({ runtime });
    const client = clientOf(platform);
    const at = { apiUrl: platform.apiUrl };
    const [kept, gone] = await Promise.all(["kept", "gone"].map((name) => Volume.create(name, client)));
    if (!kept || !gone) throw new Error("there are no volumes");
    const sandbox = await Sandbox.create({ ...client, volumeMounts: { "/mnt/v": "kept" } });
    const paused = await Sandbox.create({ ...client, volumeMounts: { "/mnt/v": "kept" } });
    await paused.pause();
    await sandbox.commands.run("echo durable > /mnt/v/inside && sync /mnt/v/inside");
    await kept.writeFile("/outside", "durable too", at);
    await gone.writeFile("/big", new Uint8Array(8 * 1024 * 1024).buffer, at);
    expect(await Volume.destroy(gone.volumeId, client)).toBe(true);
    const half = Volume.create("half", client).catch(() => undefined);
    await platform.kill9();
    const made = await half;
    await platform.start();
    expect(await kept.readFile("/inside", at)).toBe("durable\n");
    expect(await kept.readFile("/outside", at)).toBe("durable too");
    expect((await sandbox.commands.run("cat /mnt/v/inside")).stdout).toBe("durable\n");
    const resumed = await Sandbox.connect(paused.sandboxId, client);
    expect((await resumed.commands.run("cat /mnt/v/inside")).stdout).toBe("durable\n");
    // A create that was cut off either counts, or its name is free again as soon as it was cleaned up.
    if (!made) {
      await waitUntil("the name is free, or taken for good", async () => {
        const listed = (await Volume.list(client)).map(({ name }) => name);
        return (
          listed.includes("half") ||
          (await Volume.create("half", client).then(
            () => true,
            () => false,
          ))
        );
      });
    }
    expect((await Volume.list(client)).map(({ name }) => name).sort()).toEqual(["half", "kept"]);
    await Promise.all([sandbox, resumed].map((one) => one.kill()));
    for (const { volumeId } of await Volume.list(client)) expect(await Volume.destroy(volumeId, client)).toBe(true);
  },
);
