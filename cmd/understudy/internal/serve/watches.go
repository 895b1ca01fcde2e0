package serve

import (
	"sync"
	"time"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

type watcher struct {
	clients *clients
	client  *clientStream
	cache   cachev3.ConfigWatcher
}

func (w watcher) CreateWatch(r *cachev3.Request, sub cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	return w.watch(r.GetTypeUrl(), sub, func() (func(), error) { return w.cache.CreateWatch(r, sub, out) })
}

func (w watcher) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	return w.watch(r.GetTypeUrl(), sub, func() (func(), error) { return w.cache.CreateDeltaWatch(r, sub, out) })
}

func (w watcher) watch(typeURL string, sub cachev3.Subscription, create func() (func(), error)) (func(), error) {
	inTurn := func(do func()) {
		defer w.clients.waitTurn(len(sub.SubscribedResources()) + len(sub.ReturnedResources()))()
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

// largeRequestNames is the number of names from which on a request is large. A large request may
// take milliseconds, during which it holds locks that every request needs.
const largeRequestNames = 100

// waitTurn waits until a request with n names may be handled. The caller must call done afterwards.
func (c *clients) waitTurn(n int) (done func()) {
	if n < largeRequestNames {
		return func() {}
	}
	return c.largeRequests.enter()
}

// lane admits one large request at a time. After each request, it pauses for as long as the request
// took, so that large requests use at most half of one processor.
type lane struct{ mu sync.Mutex }

// enter waits until the caller may proceed. The caller must call leave afterwards.
func (l *lane) enter() (leave func()) {
	l.mu.Lock()
	startTime := time.Now()
	return func() { time.AfterFunc(time.Since(startTime), l.mu.Unlock) }
}
