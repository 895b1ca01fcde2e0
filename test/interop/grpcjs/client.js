// A stock gRPC client for Node.js. For each line on stdin with a number, it makes that many
// sequential calls to the target in its argument, and writes one line of JSON: the number of calls
// that each backend handled, and the error of a failed call. The bootstrap configuration comes from
// GRPC_XDS_BOOTSTRAP_CONFIG.
'use strict';

const readline = require('node:readline');
const grpc = require('@grpc/grpc-js');
require('@grpc/grpc-js-xds').register();

const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure());

// call makes a health check with an empty request, and returns the backend's header "backend".
function call() {
  return new Promise((resolve, reject) => {
    let backend = '';
    const identity = (bytes) => bytes;
    const deadline = new Date(Date.now() + 30_000);
    const one = client.makeUnaryRequest('/grpc.health.v1.Health/Check', identity, identity,
      Buffer.alloc(0), new grpc.Metadata(), { deadline },
      (error) => (error ? reject(error) : resolve(backend)));
    one.on('metadata', (header) => { backend = String(header.get('backend')[0]); });
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const counts = {};
    try {
      for (let i = 0; i < Number(line); i++) {
        const backend = await call();
        counts[backend] = (counts[backend] || 0) + 1;
      }
      console.log(JSON.stringify({ counts }));
    } catch (error) {
      console.log(JSON.stringify({ counts, error: String(error) }));
    }
  }
  client.close();
}

main();
