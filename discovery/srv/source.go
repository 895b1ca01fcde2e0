package srv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Scheme is the scheme of the targets that this package resolves.
const Scheme = "srv"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(Scheme, parseTarget) }

func parseTarget(t *discovery.Target) ([]discovery.Mechanism, error) {
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
		return nil, fmt.Errorf("dns: %s given, want tcp, or nothing for UDP", printable.Quote(dns))
	}
	s := source{name: p.record, resolver: discovery.OwnOptions(t, xnet.LookupOptions{}).Resolver, refresh: refresh}
	if s.resolver == nil {
		s.resolver, s.server = newResolver(p.server, dns == "tcp"), p.server
	}
	mechanism := discovery.Mechanism{Source: s, Authority: xnet.EncodeAuthority(p.host)}
	switch verify := t.Parameter("verify"); verify {
	case "", "target":
	case "record":
		mechanism.TrustNames = true
		if t.URL.Query().Has("authority") {
			return nil, errors.New("both authority and verify=record are given, which are two names for one certificate; want one of them")
		}
	default:
		return nil, fmt.Errorf("verify: %s given, want target, or record to trust DNS with the names on certificates", printable.Quote(verify))
	}
	return []discovery.Mechanism{mechanism}, nil
}

type source struct {
	name     string
	resolver xnet.Resolver
	refresh  discovery.Refresh
	server   string // host:port of the DNS server in the target, for errors
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	w := s.startWatch(r)
	return discovery.Started{Close: w.cancel, ResolveNow: w.resolveNow}, nil
}

func (s source) startWatch(r *discovery.Receiver) *watch {
	w := &watch{source: s, receiver: r, requests: make(chan struct{}, 1)}
	w.table = table{removeAfter: s.refresh.RemoveAfter, stored: r.Remembered()}
	if s.refresh.Every == 0 {
		w.table.removeAfter = 1 // there may be no second answer
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	r.Trying("looking up the SRV records of " + s.name)
	go w.run(ctx)
	return w
}

type watch struct {
	source
	receiver *discovery.Receiver
	cancel   context.CancelFunc
	requests chan struct{}

	// The following fields are used only by run.
	table       table
	silentHosts map[string]bool // hosts that did not respond to the last lookup
	lastLogged  string
}

// Check implements discovery.Source. It returns nil, because only a DNS lookup can detect errors.
func (source) Check(bool) error { return nil }

// resolveNow requests a lookup. If a request is already pending, it does nothing.
func (w *watch) resolveNow() {
	select {
	case w.requests <- struct{}{}:
	default:
	}
}

func (w *watch) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		if w.lookUp(ctx) {
			failures = 0
			w.waitForNext(ctx)
			continue
		}
		delay := xnet.Backoff(failures, rand.Float64())
		if w.refresh.Every > 0 {
			delay = min(delay, w.refresh.Next())
		}
		failures++
		xnet.Rest(ctx, delay)
	}
}

// lookUp performs a lookup and passes the result to the receiver. It reports whether the lookup
// succeeded and the receiver accepted the answer.
func (w *watch) lookUp(ctx context.Context) bool {
	a, silent, err := w.source.lookUp(ctx, w.silentHosts, w.sendPartial)
	if ctx.Err() != nil {
		return false
	}
	w.silentHosts = silent
	if err != nil {
		w.table.markUnconfirmed()
		w.receiver.Fail(err)
		return false
	}
	w.log(a)
	found := w.table.apply(w.name, a)
	w.table.stored = nil
	if len(found.Priorities) == 0 && len(a.records) > 0 {
		if err = names.DescribeFailures(a.problems); err == nil {
			err = fmt.Errorf("lookup %s: none of the %d targets has an address", w.name, len(a.records))
		}
		w.receiver.Fail(err)
		return false
	}
	return w.send(&w.table, found) == nil
}

// sendPartial passes incomplete results of a lookup to the receiver. It uses a copy of the table,
// so that the table counts each lookup only once when a record is missing.
func (w *watch) sendPartial(a answer) {
	t := w.table
	if found := t.apply(w.name, a); len(found.Priorities) > 0 {
		_ = w.send(&t, found) // no error handling is needed, because the complete answer follows
	}
}

func (w *watch) send(t *table, found discovery.Answer) error {
	found.Names = t.names()
	return w.receiver.Update(found)
}

func (w *watch) log(a answer) {
	text := ""
	switch {
	case len(a.records) == 0:
		text = "the records say that there is no such service"
	case len(a.problems) > 0:
		text = printable.Text(names.DescribeFailures(a.problems).Error())
	}
	if text != "" && text != w.lastLogged {
		logger.Warningf("srv: %s: %s", w.name, text)
	}
	w.lastLogged = text
}

// minPause is the minimum time between a lookup and the next lookup that a failed connection
// causes, as in gRPC's DNS resolver.
const minPause = 30 * time.Second

// waitForNext waits until the interval has elapsed or a lookup is requested. A requested lookup
// takes place after minPause or after the interval, whichever is shorter.
func (w *watch) waitForNext(ctx context.Context) {
	start := time.Now()
	minWait := minPause
	var due <-chan time.Time
	if w.refresh.Every > 0 {
		minWait, due = min(minWait, w.refresh.Every), time.After(w.refresh.Next())
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-w.requests:
		xnet.Rest(ctx, minWait-time.Since(start))
	}
}
