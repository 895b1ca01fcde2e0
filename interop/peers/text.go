package main

const introduction = `# The league: eight clients, eighteen faults

<!-- Written by: make league -->

What happens to calls when backends fail? Here a client has two priorities of two backends: one to be used first, and
one to fall back to. Something happens to both backends of the first priority, and the second stays well. The client
makes 50 calls a second, whether or not the calls before are answered, each with a deadline of 1 s and without
wait-for-ready.

Contents: [Calls lost](#calls-lost), [First answer](#first-answer), [Longest call](#longest-call), [Changes of
priority](#changes-of-priority), [Connections](#connections), [Reasons](#reasons), [The clients](#the-clients), [The
faults](#the-faults), [What was left out](#what-was-left-out), [How it was measured](#how-it-was-measured).

How to read the tables: a row is a fault, a column a client. A cell is the median of the runs and the worst of them,
as in "12 / 15", or one number if both are the same. The last column names the clients that are better than
Understudy with ` + "`Recommended()`" + `: their median is at least a tenth smaller, and the difference is one that a user could
notice. "none" means that it is the best, or as good as the best. In the pictures, which show medians, darker is worse.
`

const reasons = `
## Reasons

- **Connections that end** (killed, reset, GOAWAY, TLS broken, DNS changed, restart) are what every client notices. With
  retries hardly a call is lost. The zero value has none, so it loses calls that were under way. Fallback counts failed
  calls once a second, so it loses those of the first second.
- **Answers that are errors, and hangs**, are noticed only by those that look at the results of calls: outlier
  detection, fallback, and ` + "`Recommended()`" + `, which has outlier detection for priorities. The zero value, ` + "`pick_first`" + ` and
  multi-endpoint stay with the first priority.
- **A client that spreads its calls over both priorities** loses half as many calls in the first second of a hang or of
  lost packets, because half of them go to backends that are well. That is why ` + "`outlier 1 s`" + ` loses fewer than
  ` + "`Recommended()`" + ` there. The price is paid without a fault: half of all calls go to the second priority, always.
- ` + "`Recommended()`" + ` moves after one reset, and comes back 10 to 30 s later: one endpoint that works is worth more to it
  than waiting for a connection. The others reconnect within milliseconds and stay.
- **Trials**: while the first priority answers errors, ` + "`Recommended()`" + ` sends one call in a hundred there, to see
  whether it has recovered. Those that get INTERNAL are lost, those that get UNAVAILABLE are retried. Fallback sends
  none, and does not come back.
- **Crash loops**: if two connections in a row end within a second, Understudy treats the backend as failed, with a
  growing backoff ([pick-first.md](pick-first.md)). grpc-go connects again at once, thousands of times.
- ` + "`pick_first`" + ` and multi-endpoint otherwise make the fewest connections, because they keep one. The others connect to
  all backends.
`

const clientsText = `All have the same connections, credentials, deadlines and keepalive (10 s, timeout 5 s). All but the zero value
have the retries of ` + "`Recommended()`" + ` (UNAVAILABLE, up to 4 attempts) and ask for the health of their backends. Names
come from one DNS server.`

const faultsText = `Backends are gRPC servers on real sockets. A backend that is well answers a call after 10 ms. Packets are dropped
by the kernel: a socket filter drops what arrives at a socket before TCP sees it.`

const leftOut = `
## What was left out

- **Envoy** as a local proxy. Its binary is in none of the places that this project builds from: neither among Debian's
  packages nor among those of npm, and Go's modules contain only its API.
- **A share of the packets lost**, as on a bad link. The kernel of the machine has no netem, and TCP repairs small
  losses below all of these clients.
- **Streams**, and clients with few calls. See [tiers.md](tiers.md) and [a50.md](a50.md).
`

const methodText = `` + "`make league`" + ` measures this and writes the page, on Linux, in about twenty minutes. Each fault was met %s, where
a full run meets each nine times. All clients met it side by side, each with backends of its own, in one process. A client made calls for 3 s before the
fault, and its calls were counted for 30 s after it. Beside each fault ran one more client, ` + "`round_robin`" + `, without any
fault. If it lost a call, or one took longer than %v (` + "`-calm`" + `), the machine was too busy: all eight results were thrown away,
and the fault was met again (%d times). In the results that count, its longest call took %d ms, so differences of less
than that are noise. Machine: %s. Versions: %s. The single results are
in ` + "`interop/peers/league.csv`" + `.`
