// Package xnet has network helpers for sources and clients: authorities, backoff, DNS lookups,
// loopback addresses and root certificates.
package xnet

import (
	"fmt"
	"strings"
)

// What's allowed in an authority besides letters and digits (RFC 3986, sections 2.2, 2.3 and 3.2).
const authorityPunctuation = "-._~!$&'()*+,;=:@[]"

// EncodeAuthority percent-encodes everything in name that isn't allowed in an authority. gRPC
// doesn't do that for us if the authority comes from a resolver.AuthorityOverrider.
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

// AuthorityOfEndpoint returns the authority that gRPC would use by default for a target with this
// endpoint.
func AuthorityOfEndpoint(endpoint string) string {
	encoded := EncodeAuthority(endpoint)
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
}
