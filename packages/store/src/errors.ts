export type StoreErrorCode =
  | "capacity_unavailable"
  | "limit_reached"
  | "store_damaged"
  | "store_migration_failed"
  | "team_deleted"
  | "volume_gone";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly store: StoreErrorCode;
  }
}
