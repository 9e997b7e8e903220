export { type FakeBehaviour, FakeNode, type FakeSandbox } from "./fake-node.ts";
export { freePorts } from "./free-ports.ts";
export { type TestImage, writeOciLayout } from "./images/oci-layout.ts";
export { REGISTRY_USER, startRegistry, type TestRegistry } from "./images/registry.ts";
export { type TarEntry, tarArchive } from "./images/tar-archive.ts";
export { describeTraces, type HostTraces, instanceOf, loopDevices, readHostTraces, untilNothingIsLeft } from "./leftovers.ts";
export { startPebble, type TestAuthority } from "./pebble.ts";
export { type Platform, type RunningPlatform, type StartPlatformOptions, startPlatform } from "./platform.ts";
export { startPostgres, type TestPostgres } from "./postgres.ts";
export {
  createTestDataFolder,
  prepareE2bCli,
  prepareInterpreterPython,
  preparePromtool,
  preparePythonSdk,
  prepareSoakTemplate,
  prepareTestCache,
  testCacheDir,
} from "./test-cache.ts";
