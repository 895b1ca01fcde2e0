package e2e

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

var timed = flag.Bool("timed", false, "check how many calls are lost, which needs a quiet machine")

const slack = 2 * time.Second

const (
	perTier       = 10 // failed calls of a priority with two endpoints until both are ejected
	retryAttempts = 4  // attempts of calls to methods in RetryMethods
)

// gRPC does not retry a call if the connection closes before the second attempt is written. slips
// limits how many calls to methods in RetryMethods may fail for this reason. slipsOfHeld is the
// limit if the calls of a hundred connections end at once.
const (
	slips       = 2
	slipsOfHeld = 15
)

type caller struct {
	named bool
	every time.Duration
	flow  *flow
}

func (f fault) startCallers(t *testing.T, creds credentials.TransportCredentials, tiers ...[]string) []*caller {
	t.Helper()
	e, rates := readExample(t), []time.Duration{50 * time.Millisecond, time.Second}
	if f.deadline != 0 {
		rates = append([]time.Duration{20 * time.Millisecond}, rates...)
	}
	named := e.options.RetryMethods
	var callers []*caller
	for _, every := range rates {
		for _, c := range []*caller{{named: true, every: every}, {every: every}} {
			if e.options.RetryMethods = nil; c.named {
				e.options.RetryMethods = named
			}
			c.flow = startFlowOf(t, e.dial(t, creds, tiers...), e.deadline, every)
			callers = append(callers, c)
		}
	}
	return callers
}

// settle waits until both endpoints have answered each caller. Until then, calls have a long
// deadline.
func (f fault) settle(t *testing.T, callers []*caller, addresses []string) {
	t.Helper()
	for _, c := range callers {
		for _, address := range addresses {
			c.flow.await(t, 0, "was answered by "+address, func(c call) bool { return c.err == nil && c.peer == address })
		}
	}
	for _, c := range callers {
		if f.deadline != 0 {
			c.flow.limit.Store(int64(f.deadline))
		}
	}
	for _, c := range callers {
		if more := int(2*workTime/c.every) + 1; f.deadline != 0 {
			c.flow.await(t, c.flow.ended(), "ended", func(call) bool {
				more--
				return more == 0
			})
		}
	}
}

// over waits until the next priority has answered for three seconds. It returns the time of its
// first answer, and the calls that failed since the given time.
func (c *caller) over(t *testing.T, since time.Time) (first time.Time, lost []call) {
	t.Helper()
	enough := int(3 * time.Second / c.every)
	answered := 0
	c.flow.await(t, 0, "was answered by the next priority often enough", func(c call) bool {
		if of("far")(c) && !c.end.Before(since) {
			answered++
		}
		return answered == enough
	})
	c.flow.stop()
	calls, _ := c.flow.since(0)
	slices.SortFunc(calls, func(a, b call) int { return a.end.Compare(b.end) })
	calls = slices.DeleteFunc(calls, func(c call) bool { return c.end.Before(since) })
	for _, call := range calls {
		if call.err != nil {
			lost = append(lost, call)
		}
	}
	return calls[slices.IndexFunc(calls, of("far"))].end, lost
}

// Each row of the table in docs/explanation/what-starts-a-failover.md is true of the client in the
// README.
func TestFailoverCauses(t *testing.T) {
	t.Parallel()
	for some := range slices.Chunk(faults, 6) {
		var all sync.WaitGroup
		for _, f := range some {
			all.Go(func() { t.Run(f.name, f.run) })
		}
		all.Wait()
	}
}

func (f fault) run(t *testing.T) {
	creds, certificate := insecure.NewCredentials(), (*tls.Certificate)(nil)
	if strings.HasPrefix(f.name, "TLS") {
		ca := testcert.New(t)
		pair := ca.Pair("shop", "shop.example.com").Load(t)
		creds, certificate = credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()}), &pair
	}
	far := startSecureTier(t, "far", certificate)
	var near []string
	var loseAll []func()
	for range 2 {
		address, lose := f.lose(t)
		near = append(near, address)
		if lose != nil {
			loseAll = append(loseAll, lose)
		}
	}
	lost := time.Now()
	callers := f.startCallers(t, creds, near, far.addresses())
	if loseAll != nil {
		f.settle(t, callers, near)
		for _, s := range far.servers {
			s.awaitWatches(t, len(callers))
		}
		lost = time.Now()
		for _, lose := range loseAll {
			lose()
		}
	}
	for _, c := range callers { // callers with short intervals first, because a priority that has failed gets only one call in a hundred
		f.judge(t, c, lost)
	}
}

func (s *server) awaitWatches(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for range n {
		select {
		case <-s.watched:
		case <-ctx.Done():
			t.Fatalf("fewer than %d clients watch the health of %s within %v", n, s.address, limit)
		}
	}
}

func (f fault) judge(t *testing.T, c *caller, since time.Time) {
	t.Helper()
	first, lost := c.over(t, since)
	took, last := first.Sub(since), time.Duration(0)
	for _, call := range lost {
		last = max(last, call.begin.Sub(since))
	}
	t.Logf("%s: named %t, a call every %v: the next priority answered after %v; %d calls were lost, the last of them began after %v%s",
		f.name, c.named, c.every, took.Round(100*time.Microsecond), len(lost), last.Round(time.Millisecond), whys(lost))
	if took < f.after-time.Second {
		t.Errorf("the next priority answered after %v, want at least about %v", took, f.after)
	}
	if !*timed {
		return
	}
	most := f.most
	if c.every == time.Second {
		most = f.slowly
	}
	slipped := 0
	for _, call := range lost {
		if strings.HasSuffix(call.err.Error(), "transport is closing") {
			slipped++
		}
	}
	allowed := slips
	if f.after > 0 {
		allowed = slipsOfHeld
	}
	if c.named && most >= 0 && len(lost)-min(slipped, allowed) > most {
		t.Errorf("%d calls of a method in RetryMethods were lost, want at most %d", len(lost), most)
	}
	if f.ejected && len(lost) > perTier {
		for _, call := range lost {
			if late := call.begin.Sub(lost[perTier-1].end); late > slack {
				t.Errorf("a call was lost that began %v after five calls had failed on each endpoint", late)
			}
		}
	}
}

// If calls are made one after another, five fail at each endpoint, and fewer with retries.
func TestFiveFailuresEjectEndpoint(t *testing.T) {
	t.Parallel()
	for code, most := range map[codes.Code]int{codes.Internal: perTier, codes.Unavailable: perTier / retryAttempts} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			near, far := startSecureTier(t, "near", nil), startSecureTier(t, "far", nil)
			cc, ctx := readExample(t).dial(t, insecure.NewCredentials(), near.addresses(), far.addresses()), deadline(t, limit)
			awaitName(ctx, t, cc, "near")
			for _, s := range far.servers {
				s.awaitWatches(t, 1)
			}
			near.fail(status.Error(code, "broken"), near.servers...)
			pause := time.NewTimer(0)
			defer pause.Stop()
			lost := 0
			for answered := 0; answered < perTier; pause.Reset(200 * time.Millisecond) {
				<-pause.C
				if _, err := who(ctx, cc); err == nil {
					answered++
				} else if lost++; ctx.Err() != nil {
					t.Fatalf("%d calls failed within %v, the last with %v", lost, limit, err)
				}
			}
			if *timed && lost > most {
				t.Errorf("%d calls were lost, want at most %d", lost, most)
			}
		})
	}
}

func whys(lost []call) string {
	seen := make(map[string]int)
	for _, c := range lost {
		seen[c.err.Error()]++
	}
	text := ""
	for why, n := range seen {
		text += fmt.Sprintf("; %d: %s", n, why)
	}
	return text
}

// The table in the documentation has a row for each fault, with the limits of the tests.
func TestDocumentListsLostCalls(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/explanation/what-starts-a-failover.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "# What starts a failover, and how long it takes\n")
	table, _, _ = strings.Cut(table, "\n\n-")
	rows := make(map[string][]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.Trim(line, "|\n "), " | "); len(cells) == 4 {
			rows[cells[0]] = cells[1:]
		}
	}
	if len(rows) != len(faults)+2 {
		t.Errorf("the page has %d rows, want %d", len(rows)-2, len(faults))
	}
	for _, f := range faults {
		cells := rows[f.name]
		if cells == nil {
			t.Errorf("the page has no row %q", f.name)
			continue
		}
		for i, most := range []int{f.most, f.slowly} {
			if named, _, _ := strings.Cut(cells[1+i], ","); most >= 0 && named != strconv.Itoa(most) {
				t.Errorf("the page has %s lost calls for %q, the test allows %d", f.name, named, most)
			}
		}
	}
}
