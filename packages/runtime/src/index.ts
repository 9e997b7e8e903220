export { cgroupProcesses, cgroupRoots, destroyCgroup, limitProcesses, listCgroups, setMemoryLimit } from "./cgroup.privileged.ts";
export { CpuGroup } from "./cpu-group.privileged.ts";
export { createRuncRuntime } from "./driver/runc.privileged.ts";
export { createRunscRuntime } from "./driver/runsc.privileged.ts";
export { notSavable } from "./driver/saving-needs.ts";
export { type GuestProcesses, sacrificeGuestsFirst, setNiceness, sparedProcesses } from "./guest-processes.privileged.ts";
export { availableMemoryBytes, readHostFacts } from "./host-facts.privileged.ts";
export { MemoryGroup } from "./memory-group.privileged.ts";
export { type AddressPlan, planAddresses, type SlotAddresses, shortIpv6 } from "./network/addresses.ts";
export { freeBandwidth, limitBandwidth, limitedInterfaces } from "./network/bandwidth.privileged.ts";
export {
  applyFirewall,
  forgetConnections,
  removeFirewall,
  restrictTraffic,
  setProxies,
  unrestrictTraffic,
} from "./network/firewall.privileged.ts";
export {
  ALL_IPV6,
  CLOSED_RANGES,
  type EgressPorts,
  type Ipv6Restriction,
  type ProxyAddress,
  type Redirection,
  type Restriction,
} from "./network/firewall.ts";
export { COUNTER_SETS, type CounterSet } from "./network/firewall-log.ts";
export { hasIpv6, hasIpv6Route } from "./network/host-ipv6.privileged.ts";
export { type NetworkNames, networkNames } from "./network/names.ts";
export {
  createSlot,
  destroySlot,
  holdTraffic,
  letTrafficGo,
  listSlots,
  type NetworkSlot,
  openUserNamespace,
  raiseHostLimits,
  readdressSlot,
  routedPrefixes,
} from "./network/slot.privileged.ts";
export { countOpenFiles, openFilesLimit } from "./open-files.privileged.ts";
export type {
  ContainerLimits,
  ContainerPlan,
  ContainerRef,
  MemoryImage,
  Runtime,
  RuntimeCapabilities,
  RuntimeName,
  SavingNeeds,
  StartedContainer,
  UserNamespace,
  VolumePlan,
} from "./runtime.ts";
export { buildSpec, type HostFacts } from "./spec/build-spec.ts";
export { AGENT_MOUNT_POINT } from "./spec/mounts.ts";
export { withoutPlace } from "./spec/move-spec.ts";
export type { OciSpec } from "./spec/oci.ts";
