// Package srv resolves targets to the endpoints in SRV records (RFC 2782):
//
//	srv:///checkout.example.com           the service "_grpc._tcp" of the name
//	srv:///_http._tcp.example.com         a service with another name
//	srv://192.0.2.53:53/checkout.example.com   from this DNS server instead of the system's
//
// A record's priority becomes a priority of the channel: the lowest number is used first. Each
// address of the record's target becomes an endpoint, and these endpoints share the record's weight
// equally. RFC 2782 gives weight 0 "a very small chance of being selected": it counts as a tenth of
// weight 1, and records of a priority that all have weight 0 have equal shares. The target "."
// means that the service does not exist. An address of several records gets the sum of its shares,
// but only in its highest priority.
//
// # Refresh
//
// Go's resolver does not return a time to live, so records and addresses are looked up again every
// 30 s, with a jitter of 10%. The parameter refresh sets another interval. A failed connection also
// triggers a lookup, but at most once in 30 s, or in the interval if that is shorter.
//
// A record or an address is removed after two successive answers without it. The parameter
// removeAfter sets another number of answers; with refresh=0s, one answer is enough. A lookup takes
// at most 30 s. After a failed lookup, the last good answer stays in use, and the lookup is retried
// with gRPC's backoff, which starts at 1 s and does not exceed the interval. A record whose target
// cannot be looked up keeps its addresses, and does so for up to an hour even if the channel was
// idle. If the record had no addresses, it is left out. If only the IPv4 or only the IPv6 addresses
// of a target cannot be looked up, the same rules apply to these addresses.
//
// Up to 256 lookups of targets run at a time, those of the highest priority first. A lookup without
// an answer for 5 s no longer counts towards the 256. After these 5 s, the channel gets the addresses
// known so far. It gets further addresses every 5 s.
//
// A record with port 0 is left out. At most 64 addresses of a target are used.
//
// With ?dns=tcp, names are looked up over TCP only. This is useful with Consul, which silently
// truncates answers to the size of a datagram.
//
// # Certificates
//
// Endpoints are verified against the name in the target, checkout.example.com or example.com above,
// and not against the names in the records, so that forged DNS answers cannot choose the name in
// the certificate. The parameter authority, or understudy.Options.Authority, sets another name.
// With ?verify=record, each endpoint is verified against its record's target. This option trusts
// DNS, so use it only for names that are protected by DNSSEC or by the network. An authority set by
// the user takes precedence.
//
// # Proxies
//
// If HTTPS_PROXY names a proxy, records and addresses are looked up locally, and connections to the
// endpoints go through the proxy.
package srv
