// Loop devices, with the system calls of losetup and without starting it.
//
// The descriptor that a device is configured with locks the disk file, and the kernel keeps the lock as long as the device exists. Two
// devices on one disk file would be two caches of one file system, which destroys it. The lock prevents that, also after a crash of this
// process, and while another mount namespace still has an old mount.

import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { errnoOf, PlatformError } from "@skerry/base";
import { ioctlInBackground, lockFile, makeBlockDeviceNode } from "@skerry/base/linux";

// linux/loop.h
const LOOP_CTL_GET_FREE = 0x4c82;
const LOOP_CONFIGURE = 0x4c0a;
const LO_FLAGS_AUTOCLEAR = 4;
const LO_FLAGS_DIRECT_IO = 16;
const CONFIG_BYTES = 304;
const CONFIG_FLAGS_OFFSET = 60;

const SECTOR_BYTES = 4096;
/** 10 s in all: on a busy machine, a process that is just starting holds its copy of a mount for longer than a moment. */
const ATTEMPTS = 500;
const RELEASE_PAUSE_MS = 20;

export interface LoopDevice {
  readonly path: string;
  /** The device exists while this descriptor is open or a file system on it is mounted. The kernel removes it after its last user. */
  close(): void;
}

/** The loop device of a disk file: the one that the file has, or a new one. Preconditions: `diskFile` is a real path. */
export async function attachLoopDevice(diskFile: string): Promise<LoopDevice> {
  for (let attempt = 1; ; attempt += 1) {
    const file = await open(diskFile, "r+");
    try {
      if (lockFile(file.fd)) return await attachNew(diskFile, file);
    } finally {
      await file.close();
    }
    const device = openExisting(diskFile);
    if (device) return device;
    // The kernel is removing the device, which may take longer than the last unmount. Or another process has the lock.
    if (attempt === ATTEMPTS) throw new PlatformError("disk_file_in_use", `${diskFile} is in use, and not by a loop device`);
    await setTimeout(RELEASE_PAUSE_MS);
  }
}

function openExisting(diskFile: string): LoopDevice | undefined {
  const number = loopDevices().find((device) => device.backingFile === diskFile)?.number;
  if (number === undefined) return undefined;
  let fd: number;
  try {
    fd = openDevice(number);
  } catch (error) {
    if (errnoOf(error) === "ENXIO") return undefined;
    throw error;
  }
  // Before it was open, the device may have been removed and created again with another disk file.
  if (loopDevices().some((device) => device.number === number && device.backingFile === diskFile)) return deviceOf(number, fd);
  closeSync(fd);
  return undefined;
}

async function attachNew(diskFile: string, file: FileHandle): Promise<LoopDevice> {
  for (let attempt = 1; ; attempt += 1) {
    const number = await freeNumber();
    const fd = openDevice(number);
    try {
      // struct loop_config: fd, block size, struct loop_info64. Direct I/O caches files once, in the file system inside. If the host's file
      // system does not support it, the kernel uses the page cache.
      const config = Buffer.alloc(CONFIG_BYTES);
      config.writeUInt32LE(file.fd, 0);
      config.writeUInt32LE(SECTOR_BYTES, 4);
      config.writeUInt32LE(LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO, CONFIG_FLAGS_OFFSET);
      await ioctlInBackground({ fd, request: LOOP_CONFIGURE, argument: config, subject: diskFile });
      return deviceOf(number, fd);
    } catch (error) {
      closeSync(fd);
      // Another process configured the device first. Only configuring a device shows whether it is free.
      if (errnoOf(error) !== "EBUSY" || attempt === ATTEMPTS) throw error;
    }
  }
}

async function freeNumber(): Promise<number> {
  const fd = openSync("/dev/loop-control", "r+");
  try {
    return await ioctlInBackground({ fd, request: LOOP_CTL_GET_FREE, subject: "/dev/loop-control" });
  } finally {
    closeSync(fd);
  }
}

function openDevice(number: number): number {
  try {
    return openSync(devicePath(number), "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  // In a container, the kernel does not create device nodes in /dev.
  const [major = 0, minor = 0] = readFileSync(`/sys/block/loop${number}/dev`, "utf8").split(":").map(Number);
  makeBlockDeviceNode(devicePath(number), { major, minor });
  return openSync(devicePath(number), "r+");
}

/** The loop devices of this host that are in use. The path of a backing file that was deleted ends in " (deleted)". */
export function loopDevices(): { number: number; backingFile: string }[] {
  return readdirSync("/sys/block").flatMap((name) => {
    const number = /^loop(\d+)$/.exec(name)?.[1];
    if (number === undefined) return [];
    try {
      return [{ number: Number(number), backingFile: readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").replace(/\n$/, "") }];
    } catch {
      // Not in use, or not any more.
      return [];
    }
  });
}

const devicePath = (number: number) => `/dev/loop${number}`;
const deviceOf = (number: number, fd: number): LoopDevice => ({ path: devicePath(number), close: () => closeSync(fd) });
