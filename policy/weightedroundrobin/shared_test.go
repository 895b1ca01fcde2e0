package weightedroundrobin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// Endpoints whose addresses are in the same slices as in the last update are found without a key.
// The children and the picks must be the same as with copies of the addresses.
func TestSharedEndpointsAndCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	synctest.Test(t, func(t *testing.T) {
		shared, copies := newPair(t, "shared"), newPair(t, "copies")
		pool := endpointPool()
		var list []resolver.Endpoint
		for step := range 2000 {
			list = nextList(random, pool, list)
			var copied []resolver.Endpoint
			for _, e := range list {
				e.Addresses = slices.Clone(e.Addresses)
				copied = append(copied, e)
			}
			shared.refuses, copies.refuses = step%10 == 0, step%10 == 0
			a, b := shared.update(list), copies.update(copied)
			if a != b {
				t.Fatalf("step %d, endpoints %v:\nshared %s\ncopies %s", step, list, a, b)
			}
		}
		shared.Close()
		copies.Close()
	})
}

type pair struct {
	balancer.Balancer
	t       *testing.T
	cc      lbtest.ClientConn
	leaf    *lbtest.StubBuilder
	refuses bool
}

func newPair(t *testing.T, name string) *pair {
	p := &pair{t: t}
	leaf, builder := stubLeaf(name)
	leaf.OnUpdate = func(s *lbtest.Stub, _ balancer.ClientConnState) error {
		reportStub(s, connectivity.Ready)
		if p.refuses {
			return errors.New("refused")
		}
		return nil
	}
	p.leaf, p.Balancer = leaf, builder.Build(&p.cc, balancer.BuildOptions{})
	return p
}

func (p *pair) update(list []resolver.Endpoint) string {
	err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: list}})
	synctest.Wait()
	text := fmt.Sprint(err, len(p.cc.States()), p.cc.State().ConnectivityState, " ")
	for _, s := range p.leaf.Built() {
		if !s.IsClosed() {
			text += fmt.Sprint(s.Addresses(), s.Updates(), " ")
		}
	}
	for range 20 {
		text += lbtest.Pick(p.cc.State()) + " "
	}
	return text
}

// endpointPool returns endpoints of a few addresses with several weights, keys and attributes. Many
// share their addresses or attributes.
func endpointPool() []resolver.Endpoint {
	type key struct{}
	shared := endpoint("a:7").Attributes
	var pool []resolver.Endpoint
	for i := range 30 {
		addresses := endpoint(fmt.Sprint("e", i)).Addresses
		switch i % 10 {
		case 8:
			addresses = append(addresses, resolver.Address{Addr: "x"})
		case 9:
			addresses[0].ServerName = "name"
		}
		for j := range 5 {
			e := endpoint(fmt.Sprint("_:", j))
			e.Addresses = addresses
			switch j {
			case 2:
				e.Attributes = shared
			case 3:
				e.Attributes = e.Attributes.WithValue(key{}, "changed")
			case 4:
				e.Attributes = attributes.New(key{}, []int{1}) // attributes that cannot be compared
			}
			pool = append(pool, e)
		}
	}
	return append(pool, resolver.Endpoint{})
}

func nextList(random *rand.Rand, pool, list []resolver.Endpoint) []resolver.Endpoint {
	list = slices.Clone(list)
	randomEndpoint := func() resolver.Endpoint { return pool[random.IntN(len(pool))] }
	switch n := len(list); {
	case n < 3 || random.IntN(50) == 0:
		list = nil
		for range 20 {
			list = append(list, randomEndpoint())
		}
	case random.IntN(20) == 0:
		random.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	default:
		for range random.IntN(4) {
			switch i := random.IntN(len(list)); random.IntN(3) {
			case 0:
				list = slices.Delete(list, i, i+1)
			case 1:
				list = slices.Insert(list, i, randomEndpoint())
			case 2:
				list[i] = randomEndpoint()
			}
			if len(list) < 3 {
				break
			}
		}
	}
	return list
}
