/** The part of the OCI runtime specification 1.0.2 (config.json) that the platform uses. */
export interface OciSpec {
  readonly ociVersion: "1.0.2";
  readonly process: {
    readonly terminal: false;
    readonly user: { readonly uid: 0; readonly gid: 0 };
    readonly args: readonly string[];
    readonly env: readonly string[];
    readonly cwd: string;
    readonly noNewPrivileges: boolean;
    readonly capabilities: Readonly<Record<"bounding" | "effective" | "permitted", readonly string[]>>;
    readonly rlimits: readonly { readonly type: string; readonly soft: number; readonly hard: number }[];
  };
  readonly root: { readonly path: string; readonly readonly: false };
  readonly hostname: string;
  readonly mounts: readonly OciMount[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly hooks?: { readonly createRuntime: readonly OciHook[] };
  readonly linux: {
    readonly namespaces: readonly { readonly type: string; readonly path?: string }[];
    readonly uidMappings?: readonly OciIdMapping[];
    readonly gidMappings?: readonly OciIdMapping[];
    readonly cgroupsPath: string;
    readonly resources: {
      /** `swap` is the limit of memory and swap together. */
      readonly memory: { readonly limit: number; readonly swap?: number };
      readonly cpu: { readonly shares: number; readonly quota: number; readonly period: number };
      readonly pids: { readonly limit: number };
      readonly devices?: readonly { readonly allow: boolean; readonly access: string }[];
    };
    readonly sysctl?: Readonly<Record<string, string>>;
    readonly maskedPaths?: readonly string[];
    readonly readonlyPaths?: readonly string[];
    readonly seccomp?: OciSeccomp;
  };
}

export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

/** A program on the host that the runtime runs and waits for. `timeout` is in seconds. */
export interface OciHook {
  readonly path: string;
  readonly args: readonly string[];
  readonly timeout: number;
}

export interface OciIdMapping {
  readonly containerID: number;
  readonly hostID: number;
  readonly size: number;
}

export interface OciSeccomp {
  readonly defaultAction: string;
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly OciSyscallRule[];
}

export interface OciSyscallRule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly { readonly index: number; readonly value: number; readonly valueTwo?: number; readonly op: string }[];
}
