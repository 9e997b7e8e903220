/** The first message of a TLS client that names a server in the open and has an encrypted message inside. As text, one character per byte. */
export function helloWithEch(name: string): string {
  const serverName = extension(0, vector(2, Buffer.from([0]), vector(2, Buffer.from(name))));
  const encrypted = extension(0xfe0d, Buffer.alloc(120));
  const body = [
    Buffer.alloc(34),
    vector(1),
    vector(2, Buffer.from([0x13, 1])),
    vector(1, Buffer.from([0])),
    vector(2, serverName, encrypted),
  ];
  const message = Buffer.concat([Buffer.from([1]), vector(3, ...body)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), vector(2, message)]).toString("latin1");
}

function vector(size: number, ...content: Buffer[]): Buffer {
  const all = Buffer.concat(content);
  const length = Buffer.alloc(size);
  length.writeUIntBE(all.length, 0, size);
  return Buffer.concat([length, all]);
}

function extension(type: number, content: Buffer): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(type);
  return Buffer.concat([head, vector(2, content)]);
}
