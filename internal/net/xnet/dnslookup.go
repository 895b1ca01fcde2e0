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

// LookupOptions lets simulations replace DNS lookups. Sources get it through discovery.OwnOption.
type LookupOptions struct {
	Resolver Resolver // if nil, we ask the name servers of the target or of the system
}
