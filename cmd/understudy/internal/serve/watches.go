package serve

import (
	"sync"
	"time"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// watches are those of a stream. It is a cachev3.ConfigWatcher.
type watches struct {
	clients *clients
	client  *client
	cache   cachev3.ConfigWatcher
}

// CreateWatch watches what a stream of the state-of-the-world variant asks for.
func (w watches) CreateWatch(r *cachev3.Request, sub cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	return w.watch(r.GetTypeUrl(), sub, func() (func(), error) { return w.cache.CreateWatch(r, sub, out) })
}

// CreateDeltaWatch watches what a stream of the incremental variant asks for.
func (w watches) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	return w.watch(r.GetTypeUrl(), sub, func() (func(), error) { return w.cache.CreateDeltaWatch(r, sub, out) })
}

func (w watches) watch(typeURL string, sub cachev3.Subscription, create func() (func(), error)) (func(), error) {
	inTurn := func(do func()) {
		defer w.clients.turn(len(sub.SubscribedResources()) + len(sub.ReturnedResources()))()
		do()
	}
	var cancel func()
	var err error
	inTurn(func() {
		if err = w.clients.charge(w.client, typeURL, sub); err == nil {
			cancel, err = create()
		}
	})
	if cancel == nil {
		return nil, err
	}
	return func() { inTurn(cancel) }, err
}

// many is from how many names on a request waits for others of that kind. It may take
// milliseconds, in which locks are held that each request needs.
const many = 100

// turn waits until what is done with n names may be done, and returns how to end it.
func (c *clients) turn(n int) (done func()) {
	if n < many {
		return func() {}
	}
	return c.large.enter()
}

// lane is for what is large. There is one at a time, and then nothing for as long as that
// took: what is large takes half a processor at most, and leaves the rest to the others.
type lane struct{ mu sync.Mutex }

// enter waits for its turn, and returns how to end it.
func (l *lane) enter() (leave func()) {
	l.mu.Lock()
	began := time.Now()
	return func() { time.AfterFunc(time.Since(began), l.mu.Unlock) }
}
