package failover

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// patience is how long the first part is waited for.
const patience = 10 * time.Second

// multiResolver joins the answers of one resolver a part. No lock is held while it
// calls the channel or a part's resolver, so either may call back.
type multiResolver struct {
	parts         []part
	index         map[string]int // of a part, by its name
	cc            resolver.ClientConn
	serviceConfig string
	nameAddresses bool // each address carries its part's authority
	proxy         proxyFunc

	mu       sync.Mutex
	progress progress
	words    []word // one a part
	inner    []resolver.Resolver
	timer    *time.Timer // sets progress.late
	started  bool        // every part's resolver is built
	closed   bool

	publishing bool // a goroutine is in publish, and sends what turns up
	changed    bool // there is something that was not sent

	asking bool // a goroutine is in askParts
}

// word is the last word of a part's resolver.
type word struct {
	endpoints []resolver.Endpoint // none unless the part's phase is answered
	err       error               // why there are none
	told      bool                // its resolver knows that the channel did not like an update
	ask       bool                // its resolver is to be asked to resolve again
}

func newMultiResolver(b *builder, parts []part, cc resolver.ClientConn, nameAddresses bool) *multiResolver {
	r := &multiResolver{
		parts:         parts,
		index:         make(map[string]int, len(parts)),
		cc:            cc,
		serviceConfig: b.serviceConfig,
		nameAddresses: nameAddresses,
		proxy:         b.proxy,
		progress:      progress{phases: make([]phase, len(parts))},
		words:         make([]word, len(parts)),
	}
	for i, p := range parts {
		r.index[p.name] = i
	}
	return r
}

// start builds the parts' resolvers and sends what they answered meanwhile. Where
// one cannot be built it closes the others, and nothing is sent.
func (r *multiResolver) start(opts resolver.BuildOptions) error {
	r.mu.Lock()
	r.timer = time.AfterFunc(patience, r.losePatience)
	r.mu.Unlock()
	var inner []resolver.Resolver
	for i, p := range r.parts {
		built, err := p.builder.Build(p.target, &partConn{r.cc, r, i}, partOptions(opts, r.parts, p))
		if err != nil {
			r.stop()
			closeAll(inner)
			return fmt.Errorf("failover: part %d, %s: %v", i+1, quote(p.name), err) // a status in it would end waiting calls
		}
		inner = append(inner, built)
	}
	r.mu.Lock()
	r.inner, r.started = inner, true
	r.mu.Unlock()
	// Whoever answered has been told that all is well, and hears of an error again.
	_ = r.publish(nobody)
	return nil
}

func (r *multiResolver) losePatience() {
	r.mu.Lock()
	r.progress.late = true
	r.changed = r.changed || !r.progress.sent
	r.mu.Unlock()
	_ = r.publish(nobody) // see start
}

// stop ends all that the resolver does of itself. It returns the parts' resolvers,
// for the caller to close, unless that was done or a goroutine in askParts does it.
func (r *multiResolver) stop() []resolver.Resolver {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.asking {
		return nil
	}
	return r.inner
}

// Close implements resolver.Resolver. No update begins after it. It does not wait
// for one that is under way, on whose stack it may have been called, nor for a
// part's resolver that is being asked to resolve again and is closed after that.
func (r *multiResolver) Close() { closeAll(r.stop()) }

func closeAll(inner []resolver.Resolver) {
	for _, i := range inner {
		i.Close()
	}
}
