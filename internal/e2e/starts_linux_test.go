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
	failuresBeforeEjection = 10 // failed calls of a priority with two endpoints until both are ejected
	maxProbes              = 2  // calls in the next seconds that show whether it has recovered
	retryAttempts          = 4  // attempts of calls to methods in RetryMethods
)

// gRPC does not retry a call if the connection closes before the second attempt is written.
// maxUnretried limits how many calls to methods in RetryMethods may fail for this reason.
// maxUnretriedOfMany is the limit if the calls of a hundred connections end at the same time.
const (
	maxUnretried       = 2
	maxUnretriedOfMany = 15
)

type caller struct {
	retries  bool
	interval time.Duration
	flow     *flow
}

func (f fault) startCallers(t *testing.T, creds credentials.TransportCredentials, priorities ...[]string) []*caller {
	t.Helper()
	e, rates := readExample(t), []time.Duration{50 * time.Millisecond, time.Second}
	if f.deadline != 0 {
		rates = append([]time.Duration{20 * time.Millisecond}, rates...)
	}
	retryMethods := e.options.RetryMethods
	var callers []*caller
	for _, interval := range rates {
		for _, c := range []*caller{{retries: true, interval: interval}, {interval: interval}} {
			if e.options.RetryMethods = nil; c.retries {
				e.options.RetryMethods = retryMethods
			}
			c.flow = startFlowOf(t, e.dial(t, creds, priorities...), e.deadline, interval)
			callers = append(callers, c)
		}
	}
	return callers
}

// awaitEndpoints waits until both endpoints have answered each caller. Until then, calls have a
// long deadline.
func (f fault) awaitEndpoints(t *testing.T, callers []*caller, addresses []string) {
	t.Helper()
	for _, c := range callers {
		for _, address := range addresses {
			c.flow.await(t, 0, "was answered by "+address, func(c call) bool { return c.err == nil && c.peer == address })
		}
	}
	for _, c := range callers {
		if f.deadline != 0 {
			c.flow.deadline.Store(int64(f.deadline))
		}
	}
	for _, c := range callers {
		if remaining := int(2*workTime/c.interval) + 1; f.deadline != 0 {
			c.flow.await(t, c.flow.count(), "ended", func(call) bool {
				remaining--
				return remaining == 0
			})
		}
	}
}

// awaitFailover waits until the next priority has answered for three seconds. It returns the time
// of the first answer, and the calls that failed since the given time.
func (c *caller) awaitFailover(t *testing.T, since time.Time) (first time.Time, lost []call) {
	t.Helper()
	wantAnswers := int(3 * time.Second / c.interval)
	answered := 0
	c.flow.await(t, 0, "was answered by the next priority often enough", func(c call) bool {
		if answeredBy("far")(c) && !c.end.Before(since) {
			answered++
		}
		return answered == wantAnswers
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
	return calls[slices.IndexFunc(calls, answeredBy("far"))].end, lost
}

// Each row of the table in docs/explanation/what-starts-a-failover.md is true of the client in the
// README.
func TestFailoverCauses(t *testing.T) {
	t.Parallel()
	for chunk := range slices.Chunk(faults, 6) {
		var tests sync.WaitGroup
		for _, f := range chunk {
			tests.Go(func() { t.Run(f.name, f.run) })
		}
		tests.Wait()
	}
}

func (f fault) run(t *testing.T) {
	creds, certificate := insecure.NewCredentials(), (*tls.Certificate)(nil)
	if strings.HasPrefix(f.name, "TLS") {
		ca := testcert.New(t)
		pair := ca.Pair("shop", "shop.example.com").Load(t)
		creds, certificate = credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()}), &pair
	}
	far := startSecureGroup(t, "far", certificate)
	var near []string
	var breakAll []func()
	for range 2 {
		address, breakEndpoint := f.start(t)
		near = append(near, address)
		if breakEndpoint != nil {
			breakAll = append(breakAll, breakEndpoint)
		}
	}
	lost := time.Now()
	callers := f.startCallers(t, creds, near, far.addresses())
	if breakAll != nil {
		f.awaitEndpoints(t, callers, near)
		for _, s := range far.servers {
			s.awaitWatches(t, len(callers))
		}
		lost = time.Now()
		for _, breakEndpoint := range breakAll {
			breakEndpoint()
		}
	}
	for _, c := range callers { // callers with short intervals are first, because they see the next priority sooner
		f.checkLostCalls(t, c, lost)
	}
}

func (s *server) awaitWatches(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	for range n {
		select {
		case <-s.watched:
		case <-ctx.Done():
			t.Fatalf("fewer than %d clients watch the health of %s within %v", n, s.address, eventTimeout)
		}
	}
}

func (f fault) checkLostCalls(t *testing.T, c *caller, since time.Time) {
	t.Helper()
	first, lost := c.awaitFailover(t, since)
	elapsed, last := first.Sub(since), time.Duration(0)
	for _, call := range lost {
		last = max(last, call.begin.Sub(since))
	}
	t.Logf("%s: named %t, a call every %v: the next priority answered after %v; %d calls were lost, the last of them began after %v%s",
		f.name, c.retries, c.interval, elapsed.Round(100*time.Microsecond), len(lost), last.Round(time.Millisecond), countErrors(lost))
	if elapsed < f.minTime-time.Second {
		t.Errorf("the next priority answered after %v, want at least about %v", elapsed, f.minTime)
	}
	if !*timed {
		return
	}
	maxLost := f.maxLost
	if c.interval == time.Second {
		maxLost = f.maxLostSlow
	}
	unretried := 0
	for _, call := range lost {
		if strings.HasSuffix(call.err.Error(), "transport is closing") {
			unretried++
		}
	}
	allowed := maxUnretried
	if f.minTime > 0 {
		allowed = maxUnretriedOfMany
	}
	if c.retries && maxLost >= 0 && len(lost)-min(unretried, allowed) > maxLost {
		t.Errorf("%d calls of a method in RetryMethods were lost, want at most %d", len(lost), maxLost)
	}
	if f.ejected && len(lost) > failuresBeforeEjection {
		late := 0
		for _, call := range lost {
			if call.begin.Sub(lost[failuresBeforeEjection-1].end) > slack {
				late++
			}
		}
		if late > maxProbes {
			t.Errorf("%d calls were lost that began more than %v after five calls had failed on each endpoint", late, slack)
		}
	}
}

// If calls are made one after another, five fail at each endpoint, and fewer with retries.
func TestFiveFailuresEjectEndpoint(t *testing.T) {
	t.Parallel()
	for code, maxLost := range map[codes.Code]int{codes.Internal: failuresBeforeEjection, codes.Unavailable: failuresBeforeEjection / retryAttempts} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			near, far := startSecureGroup(t, "near", nil), startSecureGroup(t, "far", nil)
			cc, ctx := readExample(t).dial(t, insecure.NewCredentials(), near.addresses(), far.addresses()), timeoutContext(t, eventTimeout)
			awaitName(ctx, t, cc, "near")
			for _, s := range far.servers {
				s.awaitWatches(t, 1)
			}
			near.fail(status.Error(code, "broken"), near.servers...)
			pause := time.NewTimer(0)
			defer pause.Stop()
			lost := 0
			for answered := 0; answered < failuresBeforeEjection; pause.Reset(200 * time.Millisecond) {
				<-pause.C
				if _, err := who(ctx, cc); err == nil {
					answered++
				} else if lost++; ctx.Err() != nil {
					t.Fatalf("%d calls failed within %v, the last with %v", lost, eventTimeout, err)
				}
			}
			if *timed && lost > maxLost {
				t.Errorf("%d calls were lost, want at most %d", lost, maxLost)
			}
		})
	}
}

func countErrors(lost []call) string {
	seen := make(map[string]int)
	for _, c := range lost {
		seen[c.err.Error()]++
	}
	text := ""
	for message, n := range seen {
		text += fmt.Sprintf("; %d: %s", n, message)
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
		for i, maxLost := range []int{f.maxLost, f.maxLostSlow} {
			if named, _, _ := strings.Cut(cells[1+i], ","); maxLost >= 0 && named != strconv.Itoa(maxLost) {
				t.Errorf("the page has %s lost calls for %q, the test allows %d", f.name, named, maxLost)
			}
		}
	}
}
