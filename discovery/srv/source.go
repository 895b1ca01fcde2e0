package srv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/backoff"
	"github.com/understudy-lb/understudy/internal/dnslookup"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/printable"
)

// Scheme is the scheme of the targets of this package.
const Scheme = "srv"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(NewBuilder()) }

// NewBuilder returns a builder for grpc.WithResolvers, for a program that does not use
// understudy.With. It takes the place of the one, without options, that this package
// registers when it is imported.
func NewBuilder(opts ...discovery.Option) *discovery.Builder {
	return discovery.NewBuilder(Scheme, parts, opts...)
}

// parts reads a target.
func parts(t *discovery.Target) ([]discovery.Part, error) {
	p, err := parse(t.Target)
	if err != nil {
		return nil, err
	}
	refresh, err := t.Refresh(discovery.Refresh{Every: 30 * time.Second, RemoveAfter: 2})
	if err != nil {
		return nil, err
	}
	dns := t.Parameter("dns")
	if dns != "" && dns != "tcp" {
		return nil, fmt.Errorf("dns: %q given, want tcp, or nothing for UDP", dns)
	}
	by := discovery.OwnOptions(t, dnslookup.Options{}).Resolver
	if by == nil {
		by = resolverAt(p.server, dns == "tcp")
	}
	part := discovery.Part{
		Source:    source{p.record, by, refresh},
		Authority: authority.Encode(p.host),
	}
	switch verify := t.Parameter("verify"); verify {
	case "", "target":
	case "record":
		part.TrustNames = true
		if t.URL.Query().Has("authority") {
			return nil, errors.New("both authority and verify=record are given, which are two names for one certificate; want one of them")
		}
	default:
		return nil, fmt.Errorf("verify: %q given, want target, or record to trust DNS with the names on certificates", verify)
	}
	return []discovery.Part{part}, nil
}

// source looks up the endpoints of the SRV records of a name.
type source struct {
	name    string
	net     dnslookup.Resolver
	refresh discovery.Refresh
}

// Start implements discovery.Source.
func (s source) Start(r discovery.Receiver) (discovery.Watch, error) {
	w := &watch{source: s, receiver: r, asked: make(chan struct{}, 1)}
	w.table = table{removeAfter: s.refresh.RemoveAfter, remembered: feed.Remembered(r)}
	if s.refresh.Every == 0 {
		w.table.removeAfter = 1 // there may be no second answer
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.run(ctx)
	return w, nil
}

// watch looks up the records of one channel again and again.
type watch struct {
	source
	receiver discovery.Receiver
	cancel   context.CancelFunc
	asked    chan struct{}

	// Used by run.
	table  table
	silent map[string]bool // hosts, at the last look-up
	logged string
}

// Close implements discovery.Watch.
func (w *watch) Close() { w.cancel() }

// ResolveNow asks for a look-up soon.
func (w *watch) ResolveNow() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

func (w *watch) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		if w.lookUp(ctx) {
			failures = 0
			w.rest(ctx)
			continue
		}
		delay := backoff.Delay(failures, rand.Float64())
		if w.refresh.Every > 0 {
			delay = min(delay, w.refresh.Next())
		}
		failures++
		sleep(ctx, delay)
	}
}

// lookUp looks up once, and passes on what it finds. It returns whether that was taken.
func (w *watch) lookUp(ctx context.Context) bool {
	a, silent, err := lookUp(ctx, w.net, w.name, w.silent, w.early)
	if ctx.Err() != nil {
		return false
	}
	w.silent = silent
	if err != nil {
		w.table.lose()
		w.receiver.Fail(err)
		return false
	}
	w.log(a)
	cluster := w.table.take(w.name, a)
	w.table.remembered = nil
	if len(cluster.GetEndpoints()) == 0 && len(a.records) > 0 {
		if err = a.flaws; err == nil {
			err = fmt.Errorf("lookup %s: none of the %d targets has an address", w.name, len(a.records))
		}
		w.receiver.Fail(err)
		return false
	}
	return w.tell(&w.table, cluster) == nil
}

// early passes on what was found before all of it was. The table takes the whole answer only:
// what is missing from one look-up is missing once.
func (w *watch) early(a answer) {
	t := w.table.clone()
	if cluster := t.take(w.name, a); len(cluster.GetEndpoints()) > 0 {
		_ = w.tell(t, cluster) // the rest comes
	}
}

// tell passes on what there is now, which is nothing only where the records say so.
func (w *watch) tell(t *table, cluster *endpointv3.ClusterLoadAssignment) error {
	feed.Remember(w.receiver, t.names())
	return w.receiver.Update(discovery.Answer{Cluster: cluster, Empty: true})
}

// log says once what was wrong with a part of an answer.
func (w *watch) log(a answer) {
	text := ""
	switch {
	case len(a.records) == 0:
		text = "the records say that there is no such service"
	case a.flaws != nil:
		text = printable.Text(a.flaws.Error())
	}
	if text != "" && text != w.logged {
		logger.Warningf("srv: %s: %s", w.name, text)
	}
	w.logged = text
}

// pause is the least time between a look-up and the next one that a failed connection
// asks for, as in gRPC's own DNS resolver.
const pause = 30 * time.Second

// rest waits, after a good look-up, for the time of the next one: the interval is over, or
// somebody has asked and it is not too soon.
func (w *watch) rest(ctx context.Context) {
	began := time.Now()
	soonest := pause
	var due <-chan time.Time
	if w.refresh.Every > 0 {
		soonest = min(soonest, w.refresh.Every)
		timer := time.NewTimer(w.refresh.Next())
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-w.asked:
		sleep(ctx, soonest-time.Since(began))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
