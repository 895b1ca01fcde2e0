package failover

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/resolver"
)

// authority returns the authority of a channel to target alone whose credentials
// carry no server name and that is not given any.
func authority(builder resolver.Builder, target resolver.Target) string {
	if overrider, ok := builder.(resolver.AuthorityOverrider); ok {
		return overrider.OverrideAuthority(target)
	}
	encoded := encode(target.Endpoint())
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
}

// plain are the bytes besides letters and digits that stand for themselves in an
// authority (RFC 3986, section 3.2).
const plain = "-_.~" + "!$&'()*+,;=" + ":[]@"

// encode percent-encodes what may not stand in an authority.
func encode(text string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(plain, c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// credsCarryName reports whether the channel's credentials have a server name of
// their own, which an address's would override: gRPC hands the latter to the
// handshake in its place.
func credsCarryName(opts resolver.BuildOptions) bool {
	creds := opts.DialCreds
	if creds == nil && opts.CredsBundle != nil {
		creds = opts.CredsBundle.TransportCredentials()
	}
	return creds != nil && creds.Info().ServerName != ""
}

// partOptions returns the options that p's resolver is built with on a channel with
// opts to parts: an authority that the user set (it differs from the one that the
// target gives) holds for every part.
func partOptions(opts resolver.BuildOptions, parts []part, p part) resolver.BuildOptions {
	opts.DisableServiceConfig = true
	if opts.Authority == "" || opts.Authority == parts[0].authority {
		opts.Authority = p.authority
	}
	return opts
}
