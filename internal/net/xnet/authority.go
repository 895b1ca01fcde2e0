// Package xnet has network helpers for sources and clients: authorities, backoff, DNS lookups,
// loopback addresses and root certificates.
package xnet

import (
	"fmt"
	"strings"
)

// authorityPunctuation is what an authority may contain besides letters and digits (RFC 3986,
// sections 2.2, 2.3 and 3.2).
const authorityPunctuation = "-._~!$&'()*+,;=:@[]"

// EncodeAuthority percent-encodes the bytes of name that an authority must not contain. gRPC does
// not do this for the result of a resolver.AuthorityOverrider.
func EncodeAuthority(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(authorityPunctuation, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// AuthorityOfEndpoint returns gRPC's default authority for a target whose endpoint is the given
// one.
func AuthorityOfEndpoint(endpoint string) string {
	encoded := EncodeAuthority(endpoint)
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
}
