package srv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/printable"
	_ "github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// Scheme is the scheme of the targets that this package resolves.
const Scheme = "srv"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(Scheme, parts) }

func parts(t *discovery.Target) ([]discovery.Mechanism, error) {
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
	by := discovery.OwnOptions(t, xnet.LookupOptions{}).Resolver
	if by == nil {
		by = resolverAt(p.server, dns == "tcp")
	}
	part := discovery.Mechanism{
		Source:    source{p.record, by, refresh},
		Authority: xnet.EncodeAuthority(p.host),
	}
	switch verify := t.Parameter("verify"); verify {
	case "", "target":
	case "record":
		part.TrustNames = true
		if t.URL.Query().Has("authority") {
			return nil, errors.New("both authority and verify=record are given, which are two names for one certificate; want one of them")
		}
	default:
		return nil, fmt.Errorf("verify: %s given, want target, or record to trust DNS with the names on certificates", printable.Quote(verify))
	}
	return []discovery.Mechanism{part}, nil
}

type source struct {
	name    string
	net     xnet.Resolver
	refresh discovery.Refresh
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	w := s.begin(r)
	return discovery.Started{Close: w.cancel, ResolveNow: w.resolveNow}, nil
}

func (s source) begin(r *discovery.Receiver) *watch {
	w := &watch{source: s, receiver: r, asked: make(chan struct{}, 1)}
	w.table = table{removeAfter: s.refresh.RemoveAfter, remembered: r.Remembered()}
	if s.refresh.Every == 0 {
		w.table.removeAfter = 1 // without an interval, there may be no second answer
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
	asked    chan struct{}

	// The following fields are used only by run.
	table  table
	silent map[string]bool // hosts that did not respond in time in the last lookup
	logged string
}

// Check implements discovery.Source. It returns nil, because only a DNS lookup can find errors.
func (source) Check(bool) error { return nil }

// resolveNow requests a lookup. If a request is already pending, it does nothing.
func (w *watch) resolveNow() {
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
		delay := xnet.Backoff(failures, rand.Float64())
		if w.refresh.Every > 0 {
			delay = min(delay, w.refresh.Next())
		}
		failures++
		xnet.Rest(ctx, delay)
	}
}

// lookUp makes one lookup and passes the result to the receiver. It reports whether the lookup
// succeeded and the answer was accepted.
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
	found := w.table.take(w.name, a)
	w.table.remembered = nil
	if len(found.Priorities) == 0 && len(a.records) > 0 {
		if err = names.Flaws(a.flaws); err == nil {
			err = fmt.Errorf("lookup %s: none of the %d targets has an address", w.name, len(a.records))
		}
		w.receiver.Fail(err)
		return false
	}
	return w.tell(&w.table, found) == nil
}

// early passes incomplete results of a lookup to the receiver. It works on a copy of the table.
// Otherwise, a record that is missing from one lookup would be counted more than once.
func (w *watch) early(a answer) {
	t := w.table.clone()
	if found := t.take(w.name, a); len(found.Priorities) > 0 {
		_ = w.tell(t, found) // the error is ignored, because the complete answer follows
	}
}

func (w *watch) tell(t *table, found discovery.Answer) error {
	found.Names = t.names()
	return w.receiver.Update(found)
}

func (w *watch) log(a answer) {
	text := ""
	switch {
	case len(a.records) == 0:
		text = "the records say that there is no such service"
	case len(a.flaws) > 0:
		text = printable.Text(names.Flaws(a.flaws).Error())
	}
	if text != "" && text != w.logged {
		logger.Warningf("srv: %s: %s", w.name, text)
	}
	w.logged = text
}

// pause is the minimum time between a lookup and the next one that a failed connection causes, as
// in gRPC's DNS resolver.
const pause = 30 * time.Second

// rest waits until the interval has passed or a lookup is requested. A request takes effect after
// pause or, if that is shorter, after the interval.
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
		xnet.Rest(ctx, soonest-time.Since(began))
	}
}
