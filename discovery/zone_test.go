package discovery_test

import (
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// zone is a DNS name. Its resolvers behave like gRPC's resolvers: they look up the name when they
// are built and when they are asked to, but at most every 30 s. After a failure, they wait for a
// backoff of at least 1 s.
type zone struct {
	mu      sync.Mutex
	answers []string // the results of the lookups: addresses, or "!error"; the last result is repeated
	lookups []time.Duration
	latency time.Duration
	start   time.Time
}

func (*zone) Scheme() string { return "zone" }

func (z *zone) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	r := &zoneResolver{zone: z, cc: cc, resolveNow: make(chan struct{}, 1), closed: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r, nil
}

func (z *zone) next() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.lookups = append(z.lookups, time.Since(z.start))
	answer := z.answers[0]
	if len(z.answers) > 1 {
		z.answers = z.answers[1:]
	}
	return answer
}

func (z *zone) setAnswers(answers ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers = answers
}

func (z *zone) takeLookups() []time.Duration {
	z.mu.Lock()
	defer z.mu.Unlock()
	lookups := z.lookups
	z.lookups = nil
	return lookups
}

type zoneResolver struct {
	zone                     *zone
	cc                       resolver.ClientConn
	resolveNow, closed, done chan struct{}
}

func (r *zoneResolver) run() {
	defer close(r.done)
	for backoff := time.Second; r.sleep(r.zone.latency); {
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
			case <-r.resolveNow:
			case <-r.closed:
				return
			}
			wait = 30*time.Second - time.Since(answered)
		}
		if !r.sleep(wait) {
			return
		}
	}
}

func (r *zoneResolver) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.closed:
		return false
	}
}

func (r *zoneResolver) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.resolveNow <- struct{}{}:
	default:
	}
}

func (r *zoneResolver) Close() {
	close(r.closed)
	<-r.done
}

func stateOf(addresses ...string) resolver.State {
	state := resolver.State{Endpoints: []resolver.Endpoint{}}
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return state
}
