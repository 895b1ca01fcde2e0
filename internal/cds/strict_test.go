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
	"github.com/understudy-lb/understudy/internal/core/names"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/settle"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
	"github.com/understudy-lb/understudy/internal/topology"
)

var logged = testlog.Capture()

type spoken struct{ *discovery.Receiver }

func (*spoken) Check(bool) error { return nil }

func (s *spoken) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.Receiver = settle.Receiver(r)
	return discovery.Started{}, nil
}

func (s *spoken) say(addresses ...string) error {
	var endpoints []resolver.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return s.Update(discovery.Answer{Resolved: endpoints})
}

func unsaid(n int) []*spoken {
	var list []*spoken
	for range n {
		list = append(list, &spoken{})
	}
	return list
}

// strictOf returns the source of a cluster with names (a, b and so on) and the addresses in beside.
func strictOf(t *testing.T, weight int, names []*spoken, beside ...string) *strict {
	t.Helper()
	s := &strict{}
	var list []string
	for i, name := range names {
		host := fmt.Sprintf("%c.test", 'a'+i)
		list = append(list, host)
		s.hosts, s.sources = append(s.hosts, host+":1"), append(s.sources, name)
	}
	var endpoints []string
	for _, host := range append(list, beside...) {
		endpoints = append(endpoints, `{"endpoint":{"address":{"socketAddress":{"address":"`+host+`","portValue":1}}}}`)
	}
	s.cluster = listed(t, fmt.Sprintf(`{"loadAssignment":{"clusterName":"x","endpoints":[{"locality":{},"loadBalancingWeight":%d,"lbEndpoints":[%s]}]}}`, weight, strings.Join(endpoints, ",")))
	return s
}

func listed(t *testing.T, text string) *Cluster {
	t.Helper()
	given := parse(t, text)
	given.Name = "x"
	c, err := Read(given)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type told struct {
	mu    sync.Mutex
	lines []string
	last  string
}

func (r *told) Update(a discovery.Answer) error {
	if _, err := new(topology.Translator).Translate(&a); err != nil {
		return err
	}
	addresses := addressesOf(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	if line := strings.Join(addresses, " "); line != r.last { // internal/join also ignores an answer that repeats the last one
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

func (r *told) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, "error "+err.Error())
}

func (r *told) take() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.lines, "\n")
	r.lines = nil
	return text
}

func strictly(t *testing.T, names int, f func(r *told, name []*spoken)) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &told{}, unsaid(names)
		w, err := strictOf(t, 1, name).Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		f(r, name)
		w.Close()
		time.Sleep(time.Minute)
		if got := r.take(); got != "" {
			t.Errorf("after Close, received %s", got)
		}
	})
}

func expect(t *testing.T, r *told, want string) {
	t.Helper()
	if got := r.take(); got != want {
		t.Errorf("received\n%s\nwant\n%s", got, want)
	}
}

// A name loses all its addresses. It must keep the last ones, because gRPC's resolver also returns
// none for a name that does not exist.
func TestNameThatIsGoneKeepsItsAddresses(t *testing.T) {
	strictly(t, 2, func(r *told, name []*spoken) {
		_ = name[0].say("10.0.0.1:1")
		expect(t, r, "")
		_ = name[1].say("10.0.0.2:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1")
		if err := name[1].say(); err == nil {
			t.Error("Update accepted an empty answer")
		}
		expect(t, r, "")
		name[1].Fail(errors.New("server misbehaving"))
		expect(t, r, "")
		_ = name[0].say("10.0.0.3:1")
		expect(t, r, "10.0.0.3:1 10.0.0.2:1")
	})
}

// All names fail after a good answer. The cluster must fail, and the last good answer must stay in
// use.
func TestNamesThatAllFailLater(t *testing.T) {
	strictly(t, 2, func(r *told, name []*spoken) {
		_ = name[0].say("10.0.0.1:1")
		_ = name[1].say("10.0.0.2:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1")
		name[0].Fail(errors.New("i/o timeout"))
		expect(t, r, "")
		name[1].Fail(errors.New("no such host"))
		expect(t, r, "error a.test:1: i/o timeout; b.test:1: no such host")
		_ = name[1].say("10.0.0.2:1", "10.0.0.3:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1 10.0.0.3:1")
	})
}

// A name whose lookup does not end must not delay the other names for longer than names.Hold.
func TestNameThatIsSilentLeavesTheOthersAlone(t *testing.T) {
	strictly(t, 2, func(r *told, name []*spoken) {
		_ = name[0].say("10.0.0.1:1")
		time.Sleep(names.Hold - time.Nanosecond)
		expect(t, r, "")
		time.Sleep(time.Nanosecond)
		expect(t, r, "10.0.0.1:1")
		_ = name[1].say("10.0.0.2:1")
		expect(t, r, "10.0.0.1:1 10.0.0.2:1")
	})
}

// A name whose lookup does not end must not delay addresses without a name for longer than
// names.Hold.
func TestNameThatIsSilentLeavesAddressesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &told{}, &spoken{}
		s := &strict{hosts: []string{"a.test:1"}, sources: []discovery.Source{name}}
		s.cluster = listed(t, `{"loadAssignment":{"clusterName":"x","endpoints":[{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[
			{"endpoint":{"address":{"socketAddress":{"address":"a.test","portValue":1}}}},
			{"endpoint":{"address":{"socketAddress":{"address":"192.0.2.1","portValue":1}}}}]}]}}`)
		w, err := s.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		time.Sleep(names.Hold - time.Nanosecond)
		expect(t, r, "")
		time.Sleep(time.Nanosecond)
		expect(t, r, "192.0.2.1:1")
		_ = name.say("10.0.0.1:1")
		expect(t, r, "10.0.0.1:1 192.0.2.1:1")
	})
}

func TestNamesWithoutAnyAddress(t *testing.T) {
	strictly(t, 2, func(r *told, name []*spoken) {
		name[0].Fail(errors.New("no such host"))
		expect(t, r, "")
		_ = name[1].say()
		expect(t, r, "error a.test:1: no such host; b.test:1: its resolver answered without addresses")
		_ = name[1].say("10.0.0.2:1")
		expect(t, r, "10.0.0.2:1")
	})
	strictly(t, 1, func(r *told, _ []*spoken) {
		time.Sleep(time.Hour)
		expect(t, r, "")
	})
}

// One of several names fails. This must be logged once, and again if the name fails after a good
// lookup.
func TestNameThatFailsIsLoggedOnce(t *testing.T) {
	const line = `cluster "x": b.test:1: no such host`
	before := logged.Count(line)
	strictly(t, 2, func(r *told, name []*spoken) {
		name[1].Fail(errors.New("no such host"))
		for i := range 5 {
			_ = name[0].say(fmt.Sprintf("10.0.0.%d:1", i))
			name[1].Fail(errors.New("no such host"))
		}
		if got := logged.Count(line) - before; got != 1 {
			t.Errorf("logged %d times, want once", got)
		}
		_ = name[1].say("10.0.1.1:1")
		name[1].Fail(errors.New("no such host"))
		if got := logged.Count(line) - before; got != 2 {
			t.Errorf("logged %d times, want twice", got)
		}
		if got := r.take(); strings.Contains(got, "error") {
			t.Errorf("received %s, want no error while there are addresses", got)
		}
	})
}
