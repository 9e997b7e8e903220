// prom-client has types for its main module only.

declare module "prom-client/lib/*";
