// Package dnslookup lets a source look names up in another way than the system's, such as
// in a simulated world.
package xnet

import (
	"context"
	"net"
	"net/netip"
)

// Resolver is the part of net.Resolver that sources use.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// LookupOptions are given to a source by discovery.OwnOption.
type LookupOptions struct {
	Resolver Resolver // nil for the name servers of the target or the system
}
