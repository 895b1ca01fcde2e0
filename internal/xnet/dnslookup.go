package xnet

import (
	"context"
	"net"
	"net/netip"
)

// Resolver has the methods of net.Resolver that sources need.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// LookupOptions replace DNS lookups in simulations. Sources get them through discovery.OwnOption.
type LookupOptions struct {
	Resolver Resolver // nil means the name servers of the target or the system
}
