package cds

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type countingReceiver struct {
	mu        sync.Mutex
	updates   int
	at        time.Time // of the last update
	answer    discovery.Answer
	err       error
	rejection error
}

func (r *countingReceiver) Update(a discovery.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates++
	r.answer, r.err, r.at = a, nil, time.Now()
	return r.rejection
}

func (r *countingReceiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.updates
}

func (r *countingReceiver) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates, r.err = r.updates+1, err
}

func (r *countingReceiver) reset(rejection error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates, r.rejection = 0, rejection
}

func (r *countingReceiver) lastOctets() (octets string) {
	for _, text := range addressesOf(r.answer) {
		text = strings.TrimSuffix(text, ":1")
		octets += text[strings.LastIndexByte(text, '.'):]
	}
	return octets
}

// testThousandNames runs f with the source of a cluster that has a thousand names. The function
// round completes one lookup of each name: with err, or with an address whose last octet is last.
func testThousandNames(t *testing.T, f func(r *countingReceiver, round func(last int, err error))) {
	synctest.Test(t, func(t *testing.T) {
		names := newLookups(1000)
		c := newStrictSource(t, 1, nil, "192.0.2.1").cluster
		locality, byHost := &c.Answer.Priorities[0].Localities[0], make(map[string]*fakeLookup)
		locality.Endpoints = nil
		for i, name := range names {
			host := fmt.Sprintf("n%d.test:1", i)
			byHost[host] = name
			locality.Endpoints = append(locality.Endpoints, discovery.Endpoint{Addresses: []string{host}})
		}
		s := newStrict(c, func(host string) discovery.Source { return byHost[host] })
		r := &countingReceiver{}
		w, err := s.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		round := func(last int, err error) {
			r.mu.Lock()
			r.updates = 0
			r.mu.Unlock()
			for i, name := range names {
				if err != nil {
					name.Fail(err)
				} else {
					_ = name.succeed(fmt.Sprintf("10.%d.%d.%d:1", i/250, i%250, last))
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		f(r, round)
		w.Close()
		round(9, nil)
		time.Sleep(time.Hour)
		if r.updates > 0 {
			t.Errorf("%d updates after Close", r.updates)
		}
	})
}

func TestManyLookupsCauseFewUpdates(t *testing.T) {
	testThousandNames(t, func(r *countingReceiver, round func(int, error)) {
		const few = 3
		round(1, nil)
		if r.updates != 1 || r.lastOctets() != strings.Repeat(".1", 1000) {
			t.Errorf("%d updates in the first round, want one with all names", r.updates)
		}
		if round(1, nil); r.updates > 0 {
			t.Errorf("%d updates in a round without changes, want none", r.updates)
		}
		if round(2, nil); r.updates > few || r.lastOctets() != strings.Repeat(".2", 1000) || time.Since(r.at) != 900*time.Millisecond {
			t.Errorf("%d updates in a round that changes all names, want a few, and the last one after 100 ms", r.updates)
		}
		round(0, errors.New("server misbehaving"))
		if r.updates > few || r.err == nil || len(r.err.Error()) > 300 || !strings.Contains(r.err.Error(), "and 996 more") {
			t.Errorf("%d updates in a failing round, last error %.300v; want a few with a short error", r.updates, r.err)
		}
		if round(0, errors.New("server misbehaving")); r.updates > 0 {
			t.Errorf("%d updates in another failing round, want none", r.updates)
		}
		if round(2, nil); r.updates > few || r.err != nil {
			t.Errorf("%d updates after recovery, last error %v", r.updates, r.err)
		}
	})
}

// The channel has rejected several answers. A better one does not wait for the end of the backoff.
func TestNewAnswerDoesNotWaitForBackoff(t *testing.T) {
	testThousandNames(t, func(r *countingReceiver, round func(int, error)) {
		r.reset(errors.New("rejected"))
		round(1, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		slow := r.count()
		for r.reset(errors.New("rejected")); r.count() == 0; synctest.Wait() {
			time.Sleep(time.Millisecond)
		}
		r.reset(nil)
		if round(2, nil); r.updates == 0 || r.lastOctets() != strings.Repeat(".2", 1000) {
			t.Errorf("%d updates within a second of an answer that the channel accepts", r.updates)
		}
		r.reset(errors.New("rejected"))
		round(3, nil)
		time.Sleep(1100 * time.Millisecond)
		if n := r.count(); n < 3 || slow > 30 {
			t.Errorf("%d updates within ten minutes of rejections, and %d within two seconds of the next one; want backoffs that grow, and short ones again", slow, n)
		}
	})
}

// If the weights of a locality sum to more than the limit, all of them must be scaled down.
func TestLargeWeightsAreScaledDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &countingReceiver{}, newLookups(2)
		s := newStrictSource(t, 1, name, "192.0.2.1")
		for i, weight := range []uint32{math.MaxUint32 - 1001, 1000, 1} {
			s.cluster.Answer.Priorities[0].Localities[0].Endpoints[i].Weight = weight
		}
		s.cluster.Answer.Priorities[0].Localities = append(s.cluster.Answer.Priorities[0].Localities, discovery.Locality{Zone: "b", Weight: 1, Endpoints: []discovery.Endpoint{{Addresses: []string{"192.0.2.2:1"}, Weight: 3e9}}})
		w, err := s.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		_ = name[1].succeed("10.0.1.1:1")
		_ = name[0].succeed("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
		if _, err := new(topology.Translator).Translate(&r.answer); err != nil {
			t.Errorf("the answer is invalid: %v", err)
		}
		var got []string
		endpoints := r.answer.Priorities[0].Localities[0].Endpoints
		for _, e := range endpoints {
			got = append(got, fmt.Sprint(math.Round(float64(e.Weight)/1e7)))
		}
		if want := "[143 143 143 0 0]"; fmt.Sprint(got) != want {
			t.Errorf("weights, in tens of millions: %v, want %s", got, want)
		}
		if small, other := endpoints[3].Weight, r.answer.Priorities[0].Localities[1].Endpoints[0].Weight; small != 333 || endpoints[4].Weight != 1 || other != 3e9 {
			t.Errorf("the weight 1000 became %d, 1 became %d, and 3e9 in another locality %d; want 333, 1 and 3e9", small, endpoints[4].Weight, other)
		}
	})
}
