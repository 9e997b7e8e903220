// The certificate of the TLS listener from an ACME authority. Apart from the set-up, because its library takes a while to load.

export { type KeepCertificateOptions, keepAcmeCertificate, readCertificate } from "./keep-certificate.ts";
export { type AcmeState, readAcmeState } from "./state.ts";
