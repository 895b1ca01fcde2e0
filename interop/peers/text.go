package main

const introduction = `# The league: eight clients, eighteen faults

<!-- Written by: make league -->

What happens to calls when backends fail? Here a client has two priorities of two backends: one to be used first, and
one to fall back to. Something happens to both backends of the first priority, and the second stays well. The client
makes 100 calls a second, whether or not the calls before are answered, each with a deadline of 1 s and without
wait-for-ready.

Contents: [Calls lost](#calls-lost), [First answer](#first-answer), [Longest call](#longest-call), [Changes of
priority](#changes-of-priority), [Connections](#connections), [The clients](#the-clients), [The faults](#the-faults),
[What was left out](#what-was-left-out), [How it was measured](#how-it-was-measured).

How to read the tables: a row is a fault, a column a client. A cell is the median of the runs and the worst of them,
as in "12 / 15", or one number if both are the same. The last column names the clients that are better than
Understudy with ` + "`Recommended()`" + `: their median is at least a fifth smaller, and the difference is one that a user could
notice. "none" means that it is the best, or as good as the best. In the pictures, which show medians, darker is worse.
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

const methodText = `` + "`make league`" + ` measures this and writes the page, on Linux, in about twenty minutes. Each fault was met %s. All
clients met it side by side, each with backends of its own, in one process. A client made calls for 3 s before the
fault, and its calls were counted for 30 s after it. Beside each fault ran one more client, ` + "`round_robin`" + `, without any
fault: it lost no call, and its longest call took %d ms, else all eight results were thrown away and the fault was
met again (%d times). So differences of less than that are noise. Machine: %s. Versions: %s. The single results are
in ` + "`interop/peers/league.csv`" + `.`
