package failover

import (
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/authority"
)

// authorityOf returns the authority of a channel to target alone whose credentials
// carry no server name and that is not given any.
func authorityOf(builder resolver.Builder, target resolver.Target) string {
	if overrider, ok := builder.(resolver.AuthorityOverrider); ok {
		return overrider.OverrideAuthority(target)
	}
	encoded := authority.Encode(target.Endpoint())
	if strings.HasPrefix(encoded, ":") {
		return "localhost" + encoded
	}
	return encoded
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
