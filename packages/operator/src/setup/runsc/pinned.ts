// The one gVisor that this version of Skerry is tested with. Checkpoints restore only on the same binary, and the
// same source gives the same binary: with this Go version and these flags the build is reproducible, so the digest
// of what comes out is checked, not only the digest of what goes in.

export const GVISOR_MODULE = "gvisor.dev/gvisor";
export const GVISOR_VERSION = "v0.0.0-20260905035102-160fafc42237";

/** SHA-512 of the reproducible build, per Go architecture. */
export const GVISOR_BUILD_SHA512: Readonly<Record<GoArch, string>> = {
  amd64: "1c753653af3b4138aea77c017b754d9ed5f5b78b27a147d0b99033933666a80f187e15be194fece74c59edee976b88659a43f0d71a442131e8bd83130b79da2c",
  arm64: "a6386d6b5493c59f982ef434f28db367b19df61535b724f53c6f5b4847fef03c88775d628a2465c079ed9cd36f368623492fb35431e0f8ca320b3f688dfb6156",
};

/** The official release of the same days, as a directory name on gVisor's release server. */
export const GVISOR_RELEASE = "20260907.0";
export const GVISOR_RELEASE_BASE = "https://storage.googleapis.com/gvisor/releases/release";

export const GO_VERSION = "1.26.8";

/** SHA-256 of Go's toolchain as the module proxy serves it (golang.org/toolchain@v0.0.1-go<version>.linux-<arch>). */
export const GO_TOOLCHAIN_SHA256: Readonly<Record<GoArch, string>> = {
  amd64: "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7",
  arm64: "02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99",
};

export type GoArch = "amd64" | "arm64";

export const goArch = (): GoArch => (process.arch === "arm64" ? "arm64" : "amd64");
