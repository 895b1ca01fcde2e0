package main

const introduction = `# The league: eight clients, twenty faults

<!-- Written by: make league -->

What happens to calls when backends fail? Here, each client has two priorities of two backends each: the first is
preferred, and the second is the fallback. A fault affects the first priority while the second stays healthy. Each
client starts 50 calls a second, whether or not earlier calls have been answered. Each call has a deadline of 1 s and
does not use wait-for-ready.

In the tables, each row is a fault and each column is a client. A cell contains the median and the worst of the runs, as
in "12 / 15", or a single number if the two are equal. The last column names the clients that did better than Understudy
with ` + "`Recommended()`" + `: their median is at least 10 % smaller, and the difference is large enough for a user to notice.
"none" means that no client did better. The pictures show medians; darker is worse.
`

const reasons = `
## Reasons

- **Connections that end**: every client notices. With retries, almost no call is lost; the zero value does not retry.
- **Errors, hangs and full backends**: only the clients that look at the results of calls notice: outlier detection,
  fallback, and ` + "`Recommended()`" + `, which gives each priority the share of the calls that it can take.
- **Clients that spread their calls over both priorities** lose fewer calls in the first second of a hang or of packet
  loss, and none while half of the calls is what a full priority can do. The price: half of all calls always go to the
  second priority.
- **Probes**: while the first priority answers with errors or not at all, ` + "`Recommended()`" + ` sends it one call now and
  then. Fallback sends none, and does not return to the first priority.
- **Crash loops**: Understudy reconnects with a growing backoff ([pick-first.md](pick-first.md)). grpc-go reconnects at
  once, thousands of times. Otherwise, ` + "`pick_first`" + ` and multi-endpoint make the fewest attempts, because they keep
  one connection.
`

const clientsText = `All clients use the same credentials, deadlines and keepalive settings (10 s, timeout 5 s). All except the zero
value also use the retry policy of ` + "`Recommended()`" + ` (UNAVAILABLE, up to 4 attempts) and enable health checks. A single DNS
server resolves all names.`

const faultsText = `Backends are gRPC servers on real sockets. A healthy backend answers a call after 10 ms. A socket filter in the
kernel drops packets before they reach TCP.`

const leftOut = `
## What was left out

Envoy as a local proxy, whose binary is not available where this project gets its dependencies; partial packet loss;
streams, and clients that make few calls.
`

const methodText = `` + "`make league`" + ` compares the clients on Linux in about 20 minutes and writes this page. Each fault was
met %s, out of nine in a full run. All eight clients ran side by side in one process, each with its own backends. Each
client made calls for 3 s before the fault, and its calls were counted for 30 s after it. In addition, a ` + "`round_robin`" + `
client without a fault ran beside them. If it lost a call, or if one of its calls took longer than %v (` + "`-calm`" + `), the
machine was too busy: the results of all eight clients were discarded, and the fault was repeated (%d times). In the
remaining results, the longest call of this client took %d ms, so smaller differences are noise. Machine: %s. Versions:
%s. The individual results are in ` + "`test/peers/league.csv`" + `.`
