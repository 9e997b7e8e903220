// A minimal file system in user space that the kernel accepts: one empty directory.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { canMount } from "./small-disk.ts";

const GETATTR = 3;
const STATFS = 17;
const INIT = 26;
const HEADER_BYTES = 16;
const REQUEST_BYTES = 1024 * 1024;
const ENOSYS = 38;

export function canMountFuse(): boolean {
  return existsSync("/dev/fuse") && canMount();
}

/** This process serves the file system, so it must not use the path in a synchronous call. */
export async function mountFuse(path: string): Promise<AsyncDisposable> {
  mkdirSync(path);
  const device = await open("/dev/fuse", "r+");
  await succeed("mount", ["-i", "-t", "fuse", "-o", "fd=3,rootmode=40000,user_id=0,group_id=0", "none", path], device.fd);
  const serving = serve(device).catch((error: NodeJS.ErrnoException) => {
    // The file system is unmounted.
    if (error.code !== "ENODEV") throw error;
  });
  return {
    async [Symbol.asyncDispose]() {
      await succeed("umount", ["--lazy", path], "ignore");
      await serving;
      await device.close();
    },
  };
}

async function serve(device: FileHandle): Promise<never> {
  const request = Buffer.alloc(REQUEST_BYTES);
  for (;;) {
    await device.read(request, 0, request.length, null);
    const body = answerTo(request.readUInt32LE(4));
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(HEADER_BYTES + (body?.length ?? 0), 0);
    header.writeInt32LE(body ? 0 : -ENOSYS, 4);
    // The id of the request.
    request.copy(header, 8, 8, 16);
    await device.write(Buffer.concat([header, body ?? Buffer.alloc(0)]));
  }
}

function answerTo(operation: number): Buffer | undefined {
  if (operation === INIT) {
    const body = Buffer.alloc(64);
    // Version 7.31, and the smallest write that it allows.
    body.writeUInt32LE(7, 0);
    body.writeUInt32LE(31, 4);
    body.writeUInt32LE(4096, 20);
    return body;
  }
  if (operation === GETATTR) {
    const body = Buffer.alloc(104);
    body.writeBigUInt64LE(1n, 16);
    body.writeUInt32LE(0o040755, 76);
    body.writeUInt32LE(1, 80);
    return body;
  }
  return operation === STATFS ? Buffer.alloc(80) : undefined;
}

async function succeed(command: string, args: readonly string[], third: number | "ignore"): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit", third] });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
}
