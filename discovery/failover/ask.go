package failover

import "google.golang.org/grpc/resolver"

// ResolveNow implements resolver.Resolver: all parts are resolved again.
func (r *multiResolver) ResolveNow(resolver.ResolveNowOptions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.parts {
		r.ask(i)
	}
}

// resolveChild resolves the part again whose child of the priority policy asks for
// it. It does nothing for a name that it does not know.
func (r *multiResolver) resolveChild(child string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := r.index[child]; ok {
		r.ask(i)
	}
}

// ask has part i's resolver asked to resolve again: never on the caller's stack,
// because policies ask from within an update, and a resolver that answers at once
// would make the channel wait for itself. The lock is held.
func (r *multiResolver) ask(i int) {
	if r.closed || !r.started {
		return
	}
	r.words[i].ask = true
	if !r.asking {
		r.asking = true
		go r.askParts()
	}
}

// askParts asks the parts' resolvers, one after the other, until nobody is left to
// be asked. Where the resolver is closed meanwhile it closes them, so that none is
// asked after it was closed.
func (r *multiResolver) askParts() {
	for {
		inner, closed := r.nextToAsk()
		switch {
		case closed:
			closeAll(r.inner)
			return
		case inner == nil:
			return
		}
		inner.ResolveNow(resolver.ResolveNowOptions{})
	}
}

// nextToAsk returns a part's resolver that is to be asked, nil where there is none
// and askParts must return, or that the resolver is closed.
func (r *multiResolver) nextToAsk() (inner resolver.Resolver, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, true
	}
	for i := range r.words {
		if r.words[i].ask {
			r.words[i].ask = false
			return r.inner[i], false
		}
	}
	r.asking = false
	return nil, false
}
