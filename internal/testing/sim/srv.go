package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const service = "sim"

// records is the source of an srv: target. It also is the DNS resolver that the channel uses.
type records struct {
	refresh time.Duration

	mu       sync.Mutex
	truth    EndpointSet
	previous EndpointSet
	fault    fault
}

func newRecords(r *rand.Rand, truth EndpointSet) *records {
	return &records{refresh: time.Duration(5+r.IntN(26)) * time.Second, truth: truth}
}

func (s *records) Target() string { return fmt.Sprintf("srv:///%s?refresh=%s", service, s.refresh) }

func (s *records) Options() []given.Option {
	return []given.Option{given.Sources(discovery.OwnOption(func(o *xnet.LookupOptions) { o.Resolver = s }))}
}

// Visible leaves out localities and draining endpoints, which SRV records cannot represent, and
// therefore also priorities without usable endpoints.
func (s *records) Visible(truth EndpointSet) EndpointSet {
	seen := EndpointSet{}
	for _, tier := range truth {
		flat := Locality{Weight: 1}
		for _, l := range tier {
			for _, e := range l.Endpoints {
				if !e.Draining {
					flat.Endpoints = append(flat.Endpoints, e)
				}
			}
		}
		if len(flat.Endpoints) > 0 {
			seen = append(seen, Tier{flat})
		}
	}
	return seen
}

func (s *records) Publish(truth EndpointSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.previous, s.truth = s.truth, truth
}

func (s *records) Fail(r *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = servFail + fault(r.IntN(int(noAddresses)))
	return s.fault.String()
}

func (s *records) Restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = noFault
}

func (s *records) Lag() time.Duration { return 2*s.refresh*11/10 + time.Second }

// Recovery is the sum of a lookup that times out, the interval after it, and Lag.
func (s *records) Recovery() time.Duration { return 30*time.Second + s.refresh*11/10 + s.Lag() }

// KeepsEmptyPriorities returns false, because a priority without endpoints has no records.
func (s *records) KeepsEmptyPriorities() bool { return false }

func (s *records) Close() {}

func (s *records) LookupSRV(ctx context.Context, _, _, name string) (string, []*net.SRV, error) {
	s.mu.Lock()
	truth, fault := s.truth, s.fault
	s.mu.Unlock()
	if fault != noAddresses {
		if err := fault.lookupError(ctx, name); err != nil {
			return "", nil, err
		}
	}
	var found []*net.SRV
	for i, tier := range s.Visible(truth) {
		for _, e := range tier[0].Endpoints {
			host, port := splitAddress(e.Address)
			found = append(found, &net.SRV{Target: nameOf(host) + ".", Port: uint16(port), Priority: uint16(10 * (i + 1)), Weight: uint16(e.Weight)})
		}
	}
	if len(found) == 0 {
		found = append(found, &net.SRV{Target: "."})
	}
	return name, found, nil
}

func (s *records) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == noAddresses {
		fault = nxDomain
	}
	if err := fault.lookupError(ctx, host); err != nil {
		return nil, err
	}
	return []netip.Addr{addressOf(strings.TrimSuffix(host, "."))}, nil
}
