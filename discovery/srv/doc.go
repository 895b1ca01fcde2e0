// Package srv resolves targets to the endpoints in SRV records (RFC 2782):
//
//	srv:///checkout.example.com           the service "_grpc._tcp" of the name
//	srv:///_http._tcp.example.com         a service with another name
//	srv://192.0.2.53:53/checkout.example.com   from this DNS server instead of the system's
//
// A record's priority becomes a priority of the channel, and the lowest number is used first. Each
// address of the record's target becomes an endpoint, and these endpoints share the record's weight
// equally. RFC 2782 gives weight 0 "a very small chance of being selected", so we count it as a
// tenth of weight 1. If all records of a priority have weight 0, their shares are equal. The target
// "." means that the service doesn't exist. If several records have the same address, it gets the
// sum of its shares, but only in its highest priority.
//
// # Refresh
//
// Go's resolver doesn't tell us the time to live, so we look up records and addresses again every
// 30 s, with a jitter of 10%. Use the parameter refresh for another interval. A failed connection
// also triggers a lookup, but at most once in 30 s, or in the interval if that's shorter.
//
// A record or an address is removed if two answers in a row don't have it. Use the parameter
// removeAfter to change that. With refresh=0s, one answer is enough. A lookup takes at most 30 s.
// After a failed lookup, the last good answer stays in use, and we retry with gRPC's backoff, which
// starts at 1 s and never exceeds the interval. If a record's target can't be looked up, the record
// keeps its addresses, for up to an hour even if the channel was idle. If it never had any, we
// ignore the record. The same goes for the addresses of just one family, if only the IPv4 or only
// the IPv6 addresses of a target can't be looked up.
//
// We run up to 256 lookups of targets at a time, starting with the highest priority. A lookup that
// has taken 5 s no longer counts towards the 256. At that point, the channel gets the addresses we
// know so far, and it gets further addresses every 5 s.
//
// Records with port 0 are ignored, and we use at most 64 addresses of each target.
//
// With ?dns=tcp, names are only looked up over TCP. This is useful with Consul, which silently
// truncates answers to the size of a datagram.
//
// # Certificates
//
// Endpoints are verified against the name in the target, i.e. checkout.example.com or example.com
// above. We don't use the names in the records, because forged DNS answers could then choose the
// name in the certificate. To set another name, use the parameter authority or
// understudy.Options.Authority. With ?verify=record, each endpoint is verified against its record's
// target. Since this option trusts DNS, only use it for names that are protected by DNSSEC or by
// the network. If the user sets an authority, that takes precedence.
//
// # Proxies
//
// If HTTPS_PROXY names a proxy, records and addresses are looked up locally, and connections to the
// endpoints go through the proxy.
package srv
