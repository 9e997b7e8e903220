import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FilesystemEventSchema } from "@skerry/wire/filesystem";
import type { WatchEvent } from "./event-buffer.ts";

export async function eventMessage(event: WatchEvent): Promise<MessageInitShape<typeof FilesystemEventSchema>> {
  const entry = await event.entry;
  return { name: event.name, type: event.type, ...(entry ? { entry } : {}) };
}
