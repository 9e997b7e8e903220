// What the operations on nodes answer.

import { type Static, Type } from "typebox";
import type { ShownNode } from "../../../nodes/node-service.ts";
import { DateTime, Int32 } from "../../schemas.ts";

const Count = (description: string) => Int32({ description, minimum: 0 });
const Bytes = (description: string) => Type.Integer({ format: "int64", minimum: 0, description });

export const NodeStatusSchema = Type.Union(
  [Type.Literal("ready"), Type.Literal("draining"), Type.Literal("connecting"), Type.Literal("unhealthy"), Type.Literal("standby")],
  { title: "NodeStatus", description: "`unhealthy`: the node does not answer. Only a `ready` node gets new sandboxes and builds." },
);

const DiskSchema = Type.Object(
  {
    mountPoint: Type.String(),
    device: Type.String(),
    filesystemType: Type.String(),
    usedBytes: Bytes("Used."),
    totalBytes: Bytes("Size."),
  },
  { title: "DiskMetrics" },
);

const detailFields = {
  id: Type.String({ description: "The node's id." }),
  serviceInstanceID: Type.String({ description: "The node's id again." }),
  clusterID: Type.String({ description: "The cluster whose database this is." }),
  version: Type.String({ description: "The version of the API in the sandboxes that the node starts. Empty: the node does not answer." }),
  commit: Type.String({ description: "Always empty." }),
  status: NodeStatusSchema,
  statusChangedAt: DateTime("When the status changed."),
  sandboxCount: Count("Sandboxes that run on the node."),
  createSuccesses: Count("New sandboxes that this API process started there."),
  createFails: Count("New sandboxes that this API process could not start there."),
  machineInfo: Type.Object(
    { cpuFamily: Type.String(), cpuModel: Type.String(), cpuModelName: Type.String(), cpuArchitecture: Type.String() },
    { title: "MachineInfo", description: "Empty values: the processor or the node does not say." },
  ),
  metrics: Type.Object(
    {
      allocatedCPU: Count("CPUs of the sandboxes that run or are being started."),
      cpuPercent: Type.Number({ description: "Usage of all CPUs, 0 to 100, since the question before." }),
      cpuCount: Count("CPUs of the machine."),
      allocatedMemoryBytes: Bytes("Memory of the sandboxes that run or are being started."),
      memoryUsedBytes: Bytes("Memory of the machine that is used."),
      memoryTotalBytes: Bytes("Memory of the machine."),
      hugePagesTotal: Bytes("Always 0: sandboxes use no huge pages."),
      hugePagesUsed: Bytes("Always 0."),
      hugePagesReserved: Bytes("Always 0."),
      hugePageSizeBytes: Bytes("Always 0."),
      disks: Type.Array(DiskSchema, { description: "The file system of the data folder." }),
    },
    { title: "NodeMetrics" },
  ),
};

export const NodeDetailSchema = Type.Object(detailFields, { title: "NodeDetail" });
export const NodeSchema = Type.Object(
  { ...detailFields, sandboxStartingCount: Count("Sandboxes that are being started or resumed.") },
  { title: "Node" },
);

export const ClusterQuery = Type.Object({
  clusterID: Type.Optional(Type.String({ description: "Only nodes of this cluster. A platform has one." })),
});

const MIB = 1024 * 1024;

export function encodeNodeDetail(
  { nodeId, status, load, creates, info, ...node }: ShownNode,
  clusterId: string,
): Static<typeof NodeDetailSchema> {
  const machine = info?.machine;
  return {
    id: nodeId,
    serviceInstanceID: nodeId,
    clusterID: clusterId,
    version: info?.agentVersion ?? "",
    commit: "",
    status,
    statusChangedAt: new Date(node.statusChangedAt).toISOString(),
    sandboxCount: load.sandboxes,
    createSuccesses: creates.successes,
    createFails: creates.failures,
    machineInfo: {
      cpuFamily: machine?.cpuFamily ?? "",
      cpuModel: machine?.cpuModel ?? "",
      cpuModelName: machine?.cpuModelName ?? "",
      cpuArchitecture: machine?.cpuArchitecture ?? "",
    },
    metrics: {
      allocatedCPU: load.cpuCount,
      cpuPercent: machine?.cpuPercent ?? 0,
      cpuCount: info?.cpuCount ?? 0,
      allocatedMemoryBytes: load.memoryMb * MIB,
      memoryUsedBytes: Number(machine?.memoryUsedBytes ?? 0n),
      memoryTotalBytes: Number(info?.memoryTotalBytes ?? 0n),
      hugePagesTotal: 0,
      hugePagesUsed: 0,
      hugePagesReserved: 0,
      hugePageSizeBytes: 0,
      disks: machine ? [encodeDisk(machine)] : [],
    },
  };
}

export function encodeNode(node: ShownNode, clusterId: string): Static<typeof NodeSchema> {
  return { ...encodeNodeDetail(node, clusterId), sandboxStartingCount: node.load.starting };
}

function encodeDisk(machine: NonNullable<NonNullable<ShownNode["info"]>["machine"]>): Static<typeof DiskSchema> {
  const [usedBytes, totalBytes] = [Number(machine.diskUsedBytes), Number(machine.diskTotalBytes)];
  return { mountPoint: machine.diskFolder, device: "", filesystemType: "", usedBytes, totalBytes };
}
