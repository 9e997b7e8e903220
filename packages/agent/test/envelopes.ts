// The framing of Connect streams: one byte of flags, a length, and a message.

export interface Frame {
  readonly flags: number;
  readonly message: unknown;
}

export function envelope(message: object | Uint8Array, flags = 0): Uint8Array<ArrayBuffer> {
  const body = message instanceof Uint8Array ? message : Buffer.from(JSON.stringify(message));
  const framed = Buffer.alloc(5 + body.length);
  framed[0] = flags;
  framed.writeUInt32BE(body.length, 1);
  framed.set(body, 5);
  return new Uint8Array(framed);
}

/** A stream of JSON messages. */
export function parseEnvelopes(stream: Buffer): Frame[] {
  const frames = [];
  for (let at = 0; at < stream.length; ) {
    const length = stream.readUInt32BE(at + 1);
    frames.push({ flags: stream[at] ?? 0, message: JSON.parse(stream.subarray(at + 5, at + 5 + length).toString()) as unknown });
    at += 5 + length;
  }
  return frames;
}
