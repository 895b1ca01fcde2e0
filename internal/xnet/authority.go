// Package authority makes a channel's authority, the :authority of its calls, out of a
// name.
package xnet

import (
	"fmt"
	"strings"
)

// others holds the characters that an authority may have beside letters and digits (RFC
// 3986, sections 2.2, 2.3 and 3.2).
const others = "-._~!$&'()*+,;=:@[]"

// EncodeAuthority percent-encodes the bytes of name that an authority may not have. A
// resolver.AuthorityOverrider has to do that itself.
func EncodeAuthority(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(others, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// AuthorityOfEndpoint returns the authority that gRPC makes by default for a target with this
// endpoint.
func AuthorityOfEndpoint(endpoint string) string {
	encoded := EncodeAuthority(endpoint)
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
}
