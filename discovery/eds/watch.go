package eds

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// watch is a channel's subscription to resources.
type watch struct {
	source
	receiver   *discovery.Receiver
	needs      func(map[string]adsclient.State) adsclient.Needs
	onSnapshot func(adsclient.Snapshot)
	cancel     context.CancelFunc

	following atomic.Pointer[adsclient.Following] // nil until the servers are known
	outage    *adsclient.Outage                   // nil while the server can be reached
}

func (w *watch) open() (discovery.Started, error) {
	if err := w.Check(false); err != nil {
		return discovery.Started{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.run(ctx)
	return discovery.Started{Close: w.stop, EndpointsFailed: w.endpointsFailed, Confirmed: w.confirmed}, nil
}

// run subscribes as soon as there's a valid bootstrap. If it's invalid, we read it again with
// gRPC's backoff.
func (w *watch) run(ctx context.Context) {
	servers, err := w.servers()
	for attempt := 0; err != nil; attempt++ {
		w.receiver.Fail(err)
		if !xnet.Rest(ctx, xnet.Backoff(attempt, rand.Float64())) {
			return
		}
		servers, err = w.servers()
	}
	var names []string
	for _, s := range servers {
		names = append(names, s.URI)
	}
	w.receiver.Trying("waiting for management server " + strings.Join(names, ", then "))
	w.following.Store(adsclient.Follow(adsclient.Target{
		Cluster:          w.cluster,
		Servers:          servers,
		ReachabilityOnly: w.reachabilityOnly,
		Needs:            w.needs,
	}, w, w.recorder))
	if ctx.Err() != nil { // stop may have been called before Store
		w.stop()
	}
}

func (w *watch) Changed(s adsclient.Snapshot) {
	w.onSnapshot(s)
	w.reportOutage() // the server may have become unreachable after it sent s
}

func (w *watch) Unknown(err error) {
	w.receiver.Fail(err)
	w.reportOutage()
}

func (w *watch) Rejected(err error) { w.receiver.Rejected(err) }

func (w *watch) Lost(o *adsclient.Outage) {
	if w.outage = o; o == nil {
		w.receiver.Unconfirmed(nil, time.Time{})
	}
	w.reportOutage()
}

// reportOutage tells the receiver that its last answer may be out of date, if there's an outage.
func (w *watch) reportOutage() {
	if w.outage != nil {
		w.receiver.Unconfirmed(w.outage.Err, w.outage.LastMessage)
	}
}

func sendState(r *discovery.Receiver, s adsclient.State) {
	switch {
	case s.Good != nil:
		answer := *s.Good.Read.(*discovery.Answer)
		answer.Version = s.Version
		_ = r.Update(answer) // all we could do about an error is re-resolve, which doesn't help here
	case s.Err != nil:
		r.Fail(s.Err)
	}
}

func (w *watch) confirmed() time.Time {
	if following := w.following.Load(); following != nil {
		return following.LastMessage()
	}
	return time.Time{}
}

func (w *watch) endpointsFailed() {
	if following := w.following.Load(); following != nil {
		following.EndpointsFailed()
	}
}

func (w *watch) stop() {
	w.cancel()
	if following := w.following.Load(); following != nil {
		following.Stop()
	}
}
