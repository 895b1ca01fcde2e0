// Package authority has what resolvers need to make a channel's authority, the
// :authority of its calls, out of a name.
package authority

import (
	"fmt"
	"strings"
)

// others are what an authority may have beside letters and digits (RFC 3986,
// sections 2.2, 2.3 and 3.2).
const others = "-._~!$&'()*+,;=:@[]"

// Encode returns name with what an authority may not have percent-encoded, byte by
// byte. A resolver.AuthorityOverrider has to do that itself.
func Encode(name string) string {
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

// OfEndpoint returns the authority of a channel to a target with this endpoint, as gRPC
// makes it where nobody says anything else.
func OfEndpoint(endpoint string) string {
	encoded := Encode(endpoint)
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
}
