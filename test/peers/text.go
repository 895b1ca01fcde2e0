package main

const introduction = `# The league: eight clients, twenty faults

<!-- Written by: make league -->

What happens to your calls when backends fail? We gave each client two priorities of two backends each: the first is
preferred, and the second is the fallback. A fault only affects the first priority, while the second stays healthy. Each
client starts 50 calls a second, even if earlier ones haven't been answered yet. Calls have a deadline of 1 s and don't
wait for ready.

Each row is a fault, and each column is a client. A cell has the median and the worst of the runs, as in "12 / 15", or a
single number if they're equal. The last column names the clients that did better than Understudy with ` + "`Recommended()`" + `.
That means their median is at least 10 % smaller, and the difference is large enough for a user to notice. If it says
"none", no client did better. The pictures show medians, and darker is worse.
`

const reasons = `
## Reasons

- **Connections that end**: every client notices. With retries, hardly any calls are lost, but the zero value doesn't
  retry.
- **Errors, hangs and full backends**: you only notice these if you look at the results of calls. Outlier detection
  does, fallback does, and so does ` + "`Recommended()`" + `, which gives each priority the share of the calls that it can handle.
- **Clients that spread their calls over both priorities** lose fewer calls in the first second of a hang or of packet
  loss. If a priority is full, they don't lose any as long as it can handle half of the calls. The price is that half of
  all calls always go to the second priority.
- **Probes**: while the first priority returns errors or doesn't answer, ` + "`Recommended()`" + ` sends it a call now and then.
  Fallback doesn't, so it never returns to the first priority.
- **Crash loops**: Understudy reconnects with a growing backoff ([pick-first.md](pick-first.md)), while grpc-go
  reconnects at once, thousands of times. Otherwise, ` + "`pick_first`" + ` and multi-endpoint make the fewest attempts, because
  they only keep one connection.
`

const clientsText = `All clients use the same credentials, deadlines and keepalive settings (10 s, timeout 5 s). Except for the zero value,
they also use the retry policy of ` + "`Recommended()`" + ` (UNAVAILABLE, up to 4 attempts) and turn on health checks. A single
DNS server resolves all names.`

const faultsText = `The backends are gRPC servers on real sockets, and a healthy one answers a call after 10 ms. To drop packets before they
reach TCP, we use a socket filter in the kernel.`

const leftOut = `
## What was left out

We left out partial packet loss, streams, and clients that make few calls. We'd also have liked to include Envoy as a
local proxy, but its binary isn't available where this project gets its dependencies.
`

const methodText = "`make league`" + ` compares the clients on Linux in about 20 minutes and writes this page. We ran each fault %s (nine times
in a full run). All eight clients ran side by side in one process, each with its own backends. They made calls for 3 s
before the fault, and we counted their calls for 30 s after it. Next to them, we ran a ` + "`round_robin`" + ` client without a
fault. If it lost a call, or if one of its calls took longer than %v (` + "`-calm`" + `), the machine was too busy, so we threw
away the results of all eight clients and repeated the fault (%d times). In the results that we kept, its longest call
took %d ms, so smaller differences are just noise. Machine: %s. Versions: %s. You'll find the individual results in
` + "`test/peers/league.csv`" + `.`
