package discovery_test

import (
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// zone is a DNS name. Its resolvers behave like gRPC's: they look up the name when they are built,
// and then at each request, but at most every 30 s. After a failure, they wait for a backoff of at
// least 1 s.
type zone struct {
	mu      sync.Mutex
	answers []string // the result of each lookup: addresses, or "!error"; the last one is repeated
	lookups []time.Duration
	builds  int
	took    time.Duration
	began   time.Time
}

func (*zone) Scheme() string { return "zone" }

func (z *zone) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	z.mu.Lock()
	z.builds++
	z.mu.Unlock()
	r := &zoneResolver{zone: z, cc: cc, asked: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{})}
	go r.run()
	return r, nil
}

func (z *zone) next() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.lookups = append(z.lookups, time.Since(z.began))
	answer := z.answers[0]
	if len(z.answers) > 1 {
		z.answers = z.answers[1:]
	}
	return answer
}

func (z *zone) set(answers ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers = answers
}

func (z *zone) taken() []time.Duration {
	z.mu.Lock()
	defer z.mu.Unlock()
	lookups := z.lookups
	z.lookups = nil
	return lookups
}

type zoneResolver struct {
	zone                 *zone
	cc                   resolver.ClientConn
	asked, closed, ended chan struct{}
}

func (r *zoneResolver) run() {
	defer close(r.ended)
	for backoff := time.Second; r.pass(r.zone.took); {
		var err error
		if text, failed := strings.CutPrefix(r.zone.next(), "!"); failed {
			err = errors.New(text)
			r.cc.ReportError(err)
		} else {
			err = r.cc.UpdateState(stateOf(strings.Fields(text)...))
		}
		wait, answered := backoff, time.Now()
		backoff = min(backoff*2, 2*time.Minute)
		if err == nil {
			backoff = time.Second
			select {
			case <-r.asked:
			case <-r.closed:
				return
			}
			wait = 30*time.Second - time.Since(answered)
		}
		if !r.pass(wait) {
			return
		}
	}
}

func (r *zoneResolver) pass(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.closed:
		return false
	}
}

func (r *zoneResolver) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

func (r *zoneResolver) Close() {
	close(r.closed)
	<-r.ended
}

func stateOf(addresses ...string) resolver.State {
	state := resolver.State{Endpoints: []resolver.Endpoint{}}
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return state
}
