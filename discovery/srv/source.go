package srv

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Scheme is the scheme of this package's targets.
const Scheme = "srv"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(Scheme, parseTarget) }

func parseTarget(t *discovery.Target) ([]discovery.Mechanism, error) {
	record, host, server, err := parse(t.Target)
	if err != nil {
		return nil, err
	}
	s := source{
		name:     record,
		resolver: discovery.OwnOptions(t, xnet.LookupOptions{}).Resolver,
		refresh:  t.Refresh(discovery.Refresh{Every: 30 * time.Second, RemoveAfter: 2}),
	}
	if dns := t.Choice("dns", "tcp"); s.resolver == nil {
		s.resolver, s.server = newResolver(server, dns == "tcp"), server
	}
	trustNames := t.Choice("verify", "target", "record") == "record"
	return []discovery.Mechanism{{Source: s, Authority: xnet.EncodeAuthority(host), TrustNames: trustNames}}, nil
}

type source struct {
	name     string
	resolver xnet.Resolver
	refresh  discovery.Refresh
	server   string // host:port of the DNS server in the target, for errors
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("looking up the SRV records of " + s.name)
	return s.refresh.LookUp(r, s.newWatch(r).lookUp), nil
}

// Check returns nil, since only a DNS lookup can detect errors.
func (source) Check(bool) error { return nil }

// watch is only used by one goroutine.
type watch struct {
	source
	receiver     *discovery.Receiver
	table        table
	lastProblems error
}

func (s source) newWatch(r *discovery.Receiver) *watch {
	w := &watch{source: s, receiver: r, table: table{removeAfter: s.refresh.RemoveAfter, stored: r.Remembered()}}
	if s.refresh.Every == 0 {
		w.table.removeAfter = 1 // there may never be a second answer
	}
	return w
}

// lookUp returns the endpoints to use from now on. If the lookup takes long, it sends the receiver
// what it has found so far.
func (w *watch) lookUp(ctx context.Context) (discovery.Answer, error) {
	a, err := w.source.lookUp(ctx, w.sendPartial)
	if err != nil || ctx.Err() != nil {
		w.table.markUnconfirmed()
		return discovery.Answer{}, err
	}
	found := w.table.apply(w.name, a)
	w.table.stored = nil
	problems := names.DescribeFailures(a.problems)
	if problems != nil && (w.lastProblems == nil || problems.Error() != w.lastProblems.Error()) {
		logger.Warningf("srv: %s: %s", w.name, printable.Text(problems.Error()))
	}
	w.lastProblems = problems
	if len(found.Priorities) == 0 && len(a.records) > 0 {
		return found, cmp.Or(problems, fmt.Errorf("lookup %s: none of the %d targets has an address", w.name, len(a.records)))
	}
	return found, nil
}

// sendPartial works on a copy of the table. Otherwise, a record that's missing from one lookup would
// count as missing several times.
func (w *watch) sendPartial(a answer) {
	t := w.table
	if found := t.apply(w.name, a); len(found.Priorities) > 0 {
		_ = w.receiver.Update(found) // ignored, because the complete answer is still to come
	}
}
