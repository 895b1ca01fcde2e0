package sim

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// EndpointSet has the endpoints that the source should report for each priority, highest priority
// first. Don't modify it once it's published.
type EndpointSet []Tier

type Tier []Locality

type Locality struct {
	Zone      string
	Weight    uint32
	Endpoints []Endpoint
}

type Endpoint struct {
	Address  string
	Weight   uint32
	Draining bool
}

func (t EndpointSet) Clone() EndpointSet {
	c := make(EndpointSet, len(t))
	for i, tier := range t {
		c[i] = slices.Clone(tier)
		for j := range c[i] {
			c[i][j].Endpoints = slices.Clone(c[i][j].Endpoints)
		}
	}
	return c
}

// String lists the priorities on one line, with the zone, weight and endpoints of each locality.
// Draining endpoints are in parentheses.
func (t EndpointSet) String() string {
	tiers := make([]string, len(t))
	for i, tier := range t {
		var localities []string
		for _, l := range tier {
			var endpoints []string
			for _, e := range l.Endpoints {
				s := fmt.Sprintf("%s*%d", e.Address, e.Weight)
				if e.Draining {
					s = "(" + s + ")"
				}
				endpoints = append(endpoints, s)
			}
			localities = append(localities, fmt.Sprintf("%s*%d[%s]", l.Zone, l.Weight, strings.Join(endpoints, " ")))
		}
		tiers[i] = fmt.Sprintf("p%d %s", i, strings.Join(localities, " "))
	}
	return strings.Join(tiers, "; ")
}

func (t Tier) addressCount() int {
	different := make(map[string]bool)
	for _, l := range t {
		for _, e := range l.Endpoints {
			different[e.Address] = true
		}
	}
	return len(different)
}

func (t Tier) Serving() []string {
	var addresses []string
	for _, l := range t {
		for _, e := range l.Endpoints {
			if !e.Draining {
				addresses = append(addresses, e.Address)
			}
		}
	}
	return addresses
}

func flat(addresses []string) Tier {
	l := Locality{Weight: 1}
	for _, address := range addresses {
		l.Endpoints = append(l.Endpoints, Endpoint{Address: address, Weight: 1})
	}
	return Tier{l}
}

// Shares returns each endpoint's share of the calls. Endpoints for which isUp returns false get
// none.
func (t Tier) Shares(isUp func(address string) bool) map[string]float64 {
	shares := make(map[string]float64)
	localities := 0.0
	for _, l := range t {
		if l.upWeight(isUp) > 0 {
			localities += float64(l.Weight)
		}
	}
	for _, l := range t {
		load := l.upWeight(isUp)
		for _, e := range l.Endpoints {
			if !e.Draining && isUp(e.Address) {
				shares[e.Address] = float64(l.Weight) / localities * float64(e.Weight) / load
			}
		}
	}
	return shares
}

func (l Locality) upWeight(isUp func(address string) bool) float64 {
	sum := 0.0
	for _, e := range l.Endpoints {
		if !e.Draining && isUp(e.Address) {
			sum += float64(e.Weight)
		}
	}
	return sum
}

func (t EndpointSet) Cluster(name string) *endpointv3.ClusterLoadAssignment {
	cluster := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for priority, tier := range t {
		for _, l := range tier {
			locality := &endpointv3.LocalityLbEndpoints{
				Locality:            &corev3.Locality{Region: "sim", Zone: l.Zone},
				Priority:            uint32(priority),
				LoadBalancingWeight: wrapperspb.UInt32(l.Weight),
			}
			for _, e := range l.Endpoints {
				locality.LbEndpoints = append(locality.LbEndpoints, e.proto())
			}
			cluster.Endpoints = append(cluster.Endpoints, locality)
		}
	}
	return cluster
}

func (e Endpoint) proto() *endpointv3.LbEndpoint {
	health := corev3.HealthStatus_HEALTHY
	if e.Draining {
		health = corev3.HealthStatus_DRAINING
	}
	host, port := splitAddress(e.Address)
	return &endpointv3.LbEndpoint{
		HealthStatus:        health,
		LoadBalancingWeight: wrapperspb.UInt32(e.Weight),
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: adstest.SocketAddress(host, port),
		}},
	}
}
