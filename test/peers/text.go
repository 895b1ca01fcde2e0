package main

const introduction = `# The league: eight clients, twenty faults

<!-- Written by: make league -->

What happens to calls when backends fail? Here, each client has two priorities of two backends each: the first is
preferred, and the second is the fallback. A fault affects the first priority while the second stays healthy. Each
client starts 50 calls a second, whether or not earlier calls have been answered. Each call has a deadline of 1 s and
does not use wait-for-ready.

Contents: [Calls lost](#calls-lost), [First answer](#first-answer), [Longest call](#longest-call), [Changes of
priority](#changes-of-priority), [Connections](#connections), [Reasons](#reasons), [The clients](#the-clients), [The
faults](#the-faults), [What was left out](#what-was-left-out), [How it was measured](#how-it-was-measured).

In the tables, each row is a fault and each column is a client. A cell contains the median and the worst of the runs, as
in "12 / 15", or a single number if the two are equal. The last column names the clients that did better than Understudy
with ` + "`Recommended()`" + `: their median is at least 10 % smaller, and the difference is large enough for a user to notice.
"none" means that no client did better. The pictures show medians; darker is worse.
`

const reasons = `
## Reasons

- **Connections that end** (killed, reset, GOAWAY, TLS broken, DNS changed, restart): every client notices these faults.
  With retries, almost no call is lost. The zero value does not retry, so it can lose calls that were in flight.
  Fallback counts failed calls only once a second, so it loses the calls of the first second.
- **Errors, hangs and full backends**: only the clients that look at the results of calls notice these faults: outlier
  detection, fallback, and ` + "`Recommended()`" + `, which gives each priority the share of the calls that it can take. The
  zero value, ` + "`pick_first`" + ` and multi-endpoint stay with the first priority.
- **Clients that spread their calls over both priorities** lose half as many calls in the first second of a hang or of
  packet loss, because the other half goes to healthy backends, and none while half of the calls is what a full priority
  can do. That is why they lose fewer calls than ` + "`Recommended()`" + ` for some of these faults. This has a cost even
  when there is no fault: half of all calls always go to the second priority.
- **Full**: the share of ` + "`Recommended()`" + ` falls by 0.7 a second, so a priority that can take a third of the calls from
  one moment to the next loses about a second of calls. Clients that spread their calls lose none here, because the
  second priority takes half of them, or two thirds, all the time.
- **Reset**: ` + "`Recommended()`" + ` moves its calls after a single reset, because it uses a working endpoint instead of
  waiting for a connection, and back as soon as the connection is there. The other clients wait for milliseconds.
- **Probes**: while the first priority answers with errors or not at all, ` + "`Recommended()`" + ` sends it one call now and
  then, after 1, 2, 4 ... 60 s, to see whether it has recovered. A probe that ends with INTERNAL is lost; one that ends
  with UNAVAILABLE is retried. Fallback sends no probes and does not return to the first priority.
- **Crash loops**: if two consecutive connections end within a second, the second one without a response, Understudy
  treats the backend as failed and reconnects with a growing backoff ([pick-first.md](pick-first.md)). grpc-go
  reconnects at once, thousands of times.
- **Connection attempts**: except in crash loops, ` + "`pick_first`" + ` and multi-endpoint make the fewest, because they keep
  one connection. The other clients connect to all backends.
`

const clientsText = `All clients use the same credentials, deadlines and keepalive settings (10 s, timeout 5 s). All except the zero
value also use the retry policy of ` + "`Recommended()`" + ` (UNAVAILABLE, up to 4 attempts) and enable health checks. A single DNS
server resolves all names.`

const faultsText = `Backends are gRPC servers on real sockets. A healthy backend answers a call after 10 ms. A socket filter in the
kernel drops packets before they reach TCP.`

const leftOut = `
## What was left out

- **Envoy** as a local proxy: its binary is not available where this project gets its dependencies. Neither Debian nor
  npm has a package for it, and Go modules contain only its API.
- **Partial packet loss**, as on a bad link: the machine's kernel does not have netem, and TCP hides small losses from
  all of these clients.
- **Streams**, and clients that make few calls: see [a50.md](a50.md).
`

const methodText = `` + "`make league`" + ` compares the clients on Linux in about 20 minutes and writes this page. Each fault was
met %s, out of nine in a full run. All eight clients ran side by side in one process, each with its own backends. Each
client made calls for 3 s before the fault, and its calls were counted for 30 s after it. In addition, a ` + "`round_robin`" + `
client without a fault ran beside them. If it lost a call, or if one of its calls took longer than %v (` + "`-calm`" + `), the
machine was too busy: the results of all eight clients were discarded, and the fault was repeated (%d times). In the
remaining results, the longest call of this client took %d ms, so smaller differences are noise. Machine: %s. Versions:
%s. The individual results are in ` + "`test/peers/league.csv`" + `.`
