package cds

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/settle"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

type fakeLookup struct {
	*discovery.Receiver
	calls string
}

func (*fakeLookup) Check(bool) error { return nil }

func (s *fakeLookup) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.Receiver = settle.Receiver(r)
	return discovery.Started{ResolveNow: func() { s.calls += "resolve " }, Close: func() { s.calls += "close" }}, nil
}

func (s *fakeLookup) succeed(addresses ...string) error {
	var endpoints []resolver.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return s.Update(discovery.Answer{Resolved: endpoints})
}

func newLookups(n int) []*fakeLookup {
	var list []*fakeLookup
	for range n {
		list = append(list, &fakeLookup{})
	}
	return list
}

// newStrictSource returns the source of a cluster with the host names a.test, b.test and so on, and
// with the IP addresses in literals.
func newStrictSource(t *testing.T, weight int, names []*fakeLookup, literals ...string) *strictSource {
	t.Helper()
	var list []string
	for i := range names {
		list = append(list, fmt.Sprintf("%c.test", 'a'+i))
	}
	var endpoints []string
	for _, host := range append(list, literals...) {
		endpoints = append(endpoints, `{"endpoint":{"address":{"socketAddress":{"address":"`+host+`","portValue":1}}}}`)
	}
	c := parseCluster(t, fmt.Sprintf(`{"loadAssignment":{"clusterName":"x","endpoints":[{"locality":{},"loadBalancingWeight":%d,"lbEndpoints":[%s]}]}}`, weight, strings.Join(endpoints, ",")))
	return newStrict(c, func(host string) discovery.Source { return names[host[0]-'a'] })
}

func strictOf(t *testing.T, lookup discovery.Source, cluster string) *strictSource {
	t.Helper()
	return newStrict(parseCluster(t, cluster), func(string) discovery.Source { return lookup })
}

func parseCluster(t *testing.T, text string) *Cluster {
	t.Helper()
	given := parse(t, text)
	given.Name = "x"
	c, err := Read(given)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type answerRecorder struct {
	mu    sync.Mutex
	lines []string
	last  string
}

func (r *answerRecorder) Update(a discovery.Answer) error {
	if _, err := new(topology.Translator).Translate(&a); err != nil {
		return err
	}
	addresses := addressesOf(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	// As in internal/channel/join, an answer that equals the last one is ignored.
	if line := strings.Join(addresses, " "); line != r.last {
		r.lines, r.last = append(r.lines, line), line
	}
	return nil
}

func addressesOf(a discovery.Answer) (addresses []string) {
	for _, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				addresses = append(addresses, e.Addresses...)
			}
		}
	}
	return addresses
}

func (r *answerRecorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, "error "+err.Error())
}

func (r *answerRecorder) take() string {
	time.Sleep(time.Millisecond) // longer than the pause between answers about a few names
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.lines, "\n")
	r.lines = nil
	return text
}

func testStrict(t *testing.T, names int, f func(r *answerRecorder, name []*fakeLookup)) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &answerRecorder{}, newLookups(names)
		w, err := newStrictSource(t, 1, name).Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		f(r, name)
		w.ResolveNow()
		w.Close()
		time.Sleep(time.Minute)
		if got := r.take(); got != "" || name[0].calls != "resolve close" {
			t.Errorf("after Close, received %s, and the calls of a lookup are %s", got, name[0].calls)
		}
	})
}

func expect(t *testing.T, r *answerRecorder, want string) {
	t.Helper()
	if got := r.take(); got != want {
		t.Errorf("received\n%s\nwant\n%s", got, want)
	}
}

// A lookup returns no addresses. The name must keep its last addresses, because gRPC's resolver
// also returns no addresses for a name that does not exist.
func TestNameWithoutAddressesKeepsLastOnes(t *testing.T) {
	testStrict(t, 2, func(r *answerRecorder, name []*fakeLookup) {
		_ = name[0].succeed("10.0.0.1:1")
		expect(t, r, "")
		_ = name[1].succeed("10.0.0.2:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1")
		if err := name[1].succeed(); err == nil {
			t.Error("Update accepted an empty answer")
		}
		expect(t, r, "")
		name[1].Fail(errors.New("server misbehaving"))
		expect(t, r, "")
		_ = name[0].succeed("10.0.0.3:1")
		expect(t, r, "10.0.0.3:1 10.0.0.2:1")
	})
}

// A lookup that does not end must not delay the addresses of other names for longer than
// names.Hold.
func TestPendingNameDoesNotDelayOtherNames(t *testing.T) {
	testStrict(t, 2, func(r *answerRecorder, name []*fakeLookup) {
		_ = name[0].succeed("10.0.0.1:1")
		time.Sleep(names.Hold - 1500*time.Microsecond)
		expect(t, r, "")
		expect(t, r, "10.0.0.1:1")
		_ = name[1].succeed("10.0.0.2:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1")
	})
}

func TestNoNameHasAddresses(t *testing.T) {
	testStrict(t, 2, func(r *answerRecorder, name []*fakeLookup) {
		name[0].Fail(errors.New("no such host"))
		expect(t, r, "")
		_ = name[1].succeed()
		expect(t, r, "error a.test:1: no such host; b.test:1: its resolver returned no addresses")
		_ = name[1].succeed("10.0.0.2:1")
		expect(t, r, "10.0.0.2:1")
	})
	testStrict(t, 1, func(r *answerRecorder, _ []*fakeLookup) {
		time.Sleep(time.Hour)
		expect(t, r, "")
	})
}

// The lookups of one of two names fail repeatedly. This must be logged once, and again if a lookup
// fails after a successful one.
func TestFailingNameIsLoggedOnce(t *testing.T) {
	const line = `cluster "x": b.test:1: no such host`
	before := logged.Count(line)
	testStrict(t, 2, func(r *answerRecorder, name []*fakeLookup) {
		name[1].Fail(errors.New("no such host"))
		got := ""
		for i := range 5 {
			_ = name[0].succeed(fmt.Sprintf("10.0.0.%d:1", i))
			name[1].Fail(errors.New("no such host"))
			got += r.take()
		}
		if n := logged.Count(line) - before; n != 1 {
			t.Errorf("logged %d times, want once", n)
		}
		_ = name[1].succeed("10.0.1.1:1")
		got += r.take()
		name[1].Fail(errors.New("no such host"))
		if got += r.take(); strings.Contains(got, "error") || logged.Count(line)-before != 2 {
			t.Errorf("received %s, and logged %d times; want no error while there are addresses, and twice", got, logged.Count(line)-before)
		}
	})
}
