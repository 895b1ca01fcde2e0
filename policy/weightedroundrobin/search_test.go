package weightedroundrobin

import (
	"testing"

	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// The search finds an endpoint with one address if the address is the same in memory, even if the
// weight has changed.
func TestSearchFindsUnchangedEndpoints(t *testing.T) {
	known := endpoints("a:1 b c:3")
	known = append(known, resolver.Endpoint{Addresses: []resolver.Address{{Addr: "d"}, {Addr: "e"}}}, resolver.Endpoint{Addresses: []resolver.Address{{Addr: "f"}}})
	known[1].Attributes = known[0].Attributes
	known[2].Attributes = known[2].Attributes.WithValue("k", []int{1}) // cannot be compared
	p := &policy{core: core.New[endpointChild]()}
	p.core.Begin(core.Config{}, len(known))
	for _, e := range known {
		key, _ := hierarchy.KeyOf(e)
		c, _ := p.core.Endpoint(key, 1)
		c.Attached.endpoint = e
	}
	previous := p.core.Order()
	known[4].Addresses[0].Addr = "changed in place"
	heavier := known[0]
	heavier.Attributes = endpoint("a:7").Attributes
	incomparable := known[2]
	incomparable.Attributes = endpoint("c:3").Attributes.WithValue("k", []int{1})
	other := known[1]
	other.Attributes = other.Attributes.WithValue("zone", "a")
	for name, test := range map[string]struct {
		endpoint resolver.Endpoint
		want     *child
	}{
		"the first":              {known[0], previous[0]},
		"the second":             {known[1], previous[1]},
		"the third":              {known[2], previous[2]},
		"another weight":         {heavier, previous[0]},
		"another attribute":      {other, nil},
		"incomparable":           {incomparable, nil},
		"another list":           {endpoint("a:1"), nil},
		"two addresses":          {known[3], nil},
		"no address":             {resolver.Endpoint{}, nil},
		"an address that is new": {known[4], nil},
	} {
		s := search{previous: previous}
		if got := s.find(test.endpoint); got != test.want {
			t.Errorf("%s: found %v, want %v", name, got, test.want)
		}
	}
	s, next := search{previous: previous}, known[1]
	next.Attributes = heavier.Attributes
	if s.find(heavier) != previous[0] || s.find(next) != previous[1] {
		t.Error("endpoints that share their attributes are not both found")
	}
}
