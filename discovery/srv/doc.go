// Package srv resolves targets to the endpoints in SRV records (RFC 2782):
//
//	srv:///checkout.example.com           the service "_grpc._tcp" of the name
//	srv:///_http._tcp.example.com         a service of another name
//	srv://192.0.2.53:53/checkout.example.com   from this DNS server, not the system's
//
// A record's priority becomes a priority of the channel: the lowest number is used first. Its
// weight becomes the weight of the endpoint. All addresses of the record's target belong to that
// endpoint. RFC 2782 gives weight 0 "a very small chance of being selected": it counts as a tenth of
// weight 1, and records of a priority that all have weight 0 have equal shares. The target "." means
// that the service does not exist. A duplicate target or address counts once, in its highest
// priority.
//
// # Refresh
//
// Go's resolver does not return a time to live, so records and addresses are looked up again every
// 30 s, with a jitter of 10%. The parameter refresh sets another interval. A failed connection also
// triggers a lookup, but at most once in 30 s, or in the interval if that is shorter.
//
// A record or an address is removed after two successive answers without it, or as many as
// removeAfter sets, and with refresh=0s at once. A lookup takes at most 30 s. A failed lookup
// leaves the last good answer in use, and is retried with gRPC's backoff, 1 s at first, at most the
// interval. A record whose target cannot be looked up keeps its addresses, also while the channel
// is idle, for up to an hour, and is left out if it had none. The same holds for its IPv4 or IPv6
// addresses alone.
//
// Up to 16 targets are looked up at a time, alternating between priorities. A target without a
// response for 5 s no longer counts towards the 16, and comes last in the next lookup. After these
// 5 s the channel gets the addresses known so far, and again every 5 s if there are more.
//
// A record with port 0 is left out. At most 64 addresses of a target are used.
//
// With ?dns=tcp names are looked up over TCP only, because Consul silently truncates answers to the
// size of a datagram.
//
// An endpoint is identified by all its addresses: if a target gains or loses an address, the client
// reconnects to the endpoint.
//
// # Certificates
//
// Endpoints are verified against the name in the target, checkout.example.com or example.com above,
// and not against those of the records, so that forged DNS answers cannot choose the name in the
// certificate. The parameter authority, or understudy.Options.Authority, sets another name. With
// ?verify=record each endpoint is verified against its record's target. This trusts DNS: use it
// only for names that DNSSEC or the network protects. An authority set by the user takes
// precedence.
//
// # Proxies
//
// If HTTPS_PROXY names a proxy, records and addresses are looked up locally, and the connections go
// through the proxy.
package srv
