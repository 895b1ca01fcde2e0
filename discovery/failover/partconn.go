package failover

import (
	"errors"

	"google.golang.org/grpc/resolver"
)

var errNoAddresses = errors.New("its resolver answered without addresses")

// partConn is what a part's resolver takes for its channel. Its methods are safe
// for concurrent use and, also after Close, from anywhere: while the part's
// resolver is built, asked to resolve again, or closed.
type partConn struct {
	resolver.ClientConn // parses service configs, and has what gRPC adds
	r                   *multiResolver
	index               int // of the part
}

// UpdateState implements resolver.ClientConn. It returns an error where the part's
// resolver should try again: the answer was empty, or the channel did not take it
// and no other part explains that.
func (c *partConn) UpdateState(state resolver.State) error {
	err := c.r.answer(c.index, c.r.endpoints(c.r.parts[c.index], state))
	return errors.Join(err, c.r.publish(c.index))
}

// NewAddress implements resolver.ClientConn.
func (c *partConn) NewAddress(addresses []resolver.Address) {
	_ = c.UpdateState(resolver.State{Addresses: addresses}) // cannot be returned
}

// ReportError implements resolver.ClientConn. The part keeps what it last answered.
func (c *partConn) ReportError(err error) {
	c.r.fail(c.index, err)
	_ = c.r.publish(nobody) // the resolver knows that it failed, and tries again anyway
}

// answer notes that part i's resolver answered with endpoints, each with an address.
// It returns an error where there are none.
func (r *multiResolver) answer(i int, endpoints []resolver.Endpoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.changed = true
	if len(endpoints) == 0 {
		logger.Warningf("failover: %s: %v", r.parts[i].name, errNoAddresses)
		r.progress.phases[i] = failed
		r.words[i].endpoints, r.words[i].err = nil, errNoAddresses
		return errNoAddresses
	}
	r.progress.phases[i] = answered
	r.words[i].endpoints, r.words[i].err = endpoints, nil
	return nil
}

// fail notes that part i's resolver failed with err.
func (r *multiResolver) fail(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.progress.phases[i] == answered {
		logger.Warningf("failover: %s keeps its last addresses: %v", r.parts[i].name, err)
		return
	}
	logger.Warningf("failover: %s: %v", r.parts[i].name, err)
	// Once a state was sent, a part that fails again changes nothing in it.
	if r.progress.phases[i] == outstanding || !r.progress.sent {
		r.changed = true
	}
	r.progress.phases[i] = failed
	r.words[i].err = err
}

// endpoints returns those of state that have an address, as gRPC reads them, with
// the server name of part p on each address. The slices of state, which belong to
// the part's resolver, are left as they are.
func (r *multiResolver) endpoints(p part, state resolver.State) []resolver.Endpoint {
	given := state.Endpoints
	if given == nil {
		for _, address := range state.Addresses {
			attributes := address.BalancerAttributes
			address.BalancerAttributes = nil
			given = append(given, resolver.Endpoint{Addresses: []resolver.Address{address}, Attributes: attributes})
		}
	}
	var endpoints []resolver.Endpoint
	for _, endpoint := range r.proxy.keepDirect(p, given) {
		if len(endpoint.Addresses) == 0 {
			continue
		}
		endpoint.Addresses = append([]resolver.Address(nil), endpoint.Addresses...)
		for i := range endpoint.Addresses {
			endpoint.Addresses[i].ServerName = ""
			if r.nameAddresses {
				endpoint.Addresses[i].ServerName = p.authority
			}
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
}
