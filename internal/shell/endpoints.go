package shell

import (
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/hierarchy"
)

// Split groups endpoints by the first element of their paths, which names a child, and removes that
// element. It logs a warning if an endpoint belongs to no known child, unless the previous update
// had such endpoints as well.
func (s *Shell) Split(endpoints []resolver.Endpoint, known func(child string) bool) map[string][]resolver.Endpoint {
	groups := s.grouper.Group(endpoints)
	strays := len(endpoints)
	for child, group := range groups {
		if known(child) {
			strays -= len(group)
		}
	}
	if strays > 0 && !s.strays {
		Logger.Warningf("%s: %s: %d of %d endpoints belong to no child and get no calls, the first is %s", s.name, s.Options.Target.String(), strays, len(endpoints), firstStray(endpoints, known))
	}
	s.strays = strays > 0
	return groups
}

// firstStray describes the first endpoint that belongs to no known child. It copies each path, so
// it is slow.
func firstStray(endpoints []resolver.Endpoint, known func(child string) bool) string {
	for _, endpoint := range endpoints {
		if path := hierarchy.Path(endpoint); len(path) == 0 || !known(path[0]) {
			return fmt.Sprintf("%v with the path %q", hierarchy.Addresses(endpoint), path)
		}
	}
	return ""
}

// LogOnce logs a warning unless *said is true, and sets *said.
func (s *Shell) LogOnce(said *bool, format string, args ...any) {
	if !*said {
		*said = true
		Logger.Warningf(s.name+": "+format, args...)
	}
}

// Only returns a copy of state that has only the given endpoints.
func Only(endpoints []resolver.Endpoint, state resolver.State) resolver.State {
	state.Endpoints, state.Addresses = endpoints, nil
	return state
}

// WithEndpoints returns a copy of state with the given endpoints, and with their addresses in the
// field Addresses. Policies from base.NewBalancerBuilder use only that field. Policies that have a
// Shell do not use it, so Child.Update calls WithEndpoints only for other policies.
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
