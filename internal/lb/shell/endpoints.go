package shell

import (
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// Split groups endpoints by the first element of their paths, which names a child, and removes that
// element. If there are endpoints that don't belong to any known child, we log a warning, unless
// there already were some in the previous update.
func (s *Shell) Split(endpoints []resolver.Endpoint, known func(child string) bool) map[string][]resolver.Endpoint {
	groups := hierarchy.Group(endpoints)
	unassigned := len(endpoints)
	for child, group := range groups {
		if known(child) {
			unassigned -= len(group)
		}
	}
	if unassigned > 0 && !s.hadUnassigned {
		Logger.Warningf("%s: %s: %d of %d endpoints belong to no child and get no calls, the first is %s", s.name, s.Options.Target.String(), unassigned, len(endpoints), firstUnassigned(endpoints, known))
	}
	s.hadUnassigned = unassigned > 0
	return groups
}

// firstUnassigned copies every path, so it's slow.
func firstUnassigned(endpoints []resolver.Endpoint, known func(child string) bool) string {
	for _, endpoint := range endpoints {
		if path := hierarchy.Path(endpoint); len(path) == 0 || !known(path[0]) {
			return fmt.Sprintf("%v with the path %q", hierarchy.Addresses(endpoint), path)
		}
	}
	return ""
}

func (s *Shell) LogOnce(logged *bool, format string, args ...any) {
	if !*logged {
		*logged = true
		Logger.Warningf(s.name+": "+format, args...)
	}
}

func WithOnlyEndpoints(endpoints []resolver.Endpoint, state resolver.State) resolver.State {
	state.Endpoints, state.Addresses = endpoints, nil
	return state
}

// WithEndpoints returns a copy of state with the given endpoints, whose addresses are also in the
// field Addresses. Policies from base.NewBalancerBuilder look nowhere else. Policies with a Shell
// don't need that, and Child.Update skips it for them.
func WithEndpoints(state resolver.State, endpoints []resolver.Endpoint) resolver.State {
	n := 0
	for _, endpoint := range endpoints {
		n += len(endpoint.Addresses)
	}
	state.Endpoints, state.Addresses = endpoints, nil
	if n > 0 {
		state.Addresses = make([]resolver.Address, 0, n)
	}
	for _, endpoint := range endpoints {
		state.Addresses = append(state.Addresses, endpoint.Addresses...)
	}
	return state
}
