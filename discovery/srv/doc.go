// Package srv takes the endpoints of a channel from SRV records (RFC 2782):
//
//	srv:///checkout.example.com           the service "_grpc._tcp" of the name
//	srv:///_http._tcp.example.com         a service of another name
//	srv://192.0.2.53:53/checkout.example.com   asked of another name server than the system's
//
// A record's priority becomes a priority of the channel: the lowest number is used first.
// Its weight becomes the weight of the endpoint. All addresses of the record's target
// belong to that one endpoint; they are tried as those of one machine. RFC 2782 gives
// weight 0 "a very small chance of being selected": it counts as a tenth of the weight 1,
// and where all records of a priority have it, they share alike. The target "." means
// that there is no such service. A target or an address that is given twice counts once,
// at its highest priority.
//
// # Looking again
//
// The standard library's resolver tells no time to live. So the records and the addresses
// are looked up again every 30 s, give or take a tenth. The parameter refresh sets another
// interval. They are also looked up when a connection fails, but no sooner than 30 s, or
// that interval, after the last time.
//
// A record or an address leaves only after it was missing from two answers in a row, or
// from as many as removeAfter says. With refresh=0s it leaves at once. A look-up takes at
// most 30 s. One that fails leaves the last good answer in use, and is tried again with
// gRPC's backoff, 1 s at first, and not later than the interval. A target whose addresses
// cannot be looked up keeps those that it had, also while the channel is idle, for up to an
// hour, and is left out where it had none. So it is with its addresses of IPv4 alone, or of
// IPv6.
//
// Of the targets, 16 are looked up at a time, of all priorities in turn. One of which nothing
// is heard for 5 s makes room for another one, and comes last at the next look-up. After these
// 5 s the channel gets what is known, and again every 5 s if there is more.
//
// A record with port 0 is left out. Of the addresses of a target 64 count.
//
// With ?dns=tcp names are looked up over TCP alone. Consul leaves out what does not go into a
// datagram, and does not say so.
//
// An endpoint is told from others by all of its addresses: where one is added to a target,
// or leaves it, its connection is made anew.
//
// # Certificates
//
// Endpoints are verified against the name in the target, checkout.example.com or
// example.com above, and never against those of the records: whoever can forge a DNS answer
// must not choose the name that a certificate is checked against. The parameter authority,
// or understudy.Options.Authority, gives another one. With ?verify=record each endpoint is
// verified against its record's target, which trusts DNS: only for names that DNSSEC, or
// the network, protects. An authority that is given wins over it.
//
// # Proxies
//
// Where HTTPS_PROXY names a proxy, records and addresses are looked up here, and the
// addresses go through the proxy.
package srv
