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
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/topology"
)

type counting struct {
	mu      sync.Mutex
	told    int
	answer  discovery.Answer
	err     error
	refusal error
}

func (r *counting) Update(a discovery.Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told++
	r.answer, r.err = a, nil
	return r.refusal
}

func (r *counting) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.err = r.told+1, err
}

func (r *counting) begin(refusal error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.refusal = 0, refusal
}

func (r *counting) last() (all string) {
	for _, at := range addressesOf(r.answer) {
		at = strings.TrimSuffix(at, ":1")
		all += at[strings.LastIndexByte(at, '.'):]
	}
	return all
}

// thousand runs f with a cluster of a thousand names. round ends one lookup of each name: with an
// address that ends in last or, if err is not nil, with err.
func thousand(t *testing.T, f func(r *counting, round func(last int, err error))) {
	synctest.Test(t, func(t *testing.T) {
		names := unsaid(1000)
		s := strictOf(t, 1, nil, "192.0.2.1")
		locality := &s.cluster.answer.Priorities[0].Localities[0]
		locality.Endpoints = nil
		for i, name := range names {
			host := fmt.Sprintf("n%d.test:1", i)
			s.hosts, s.sources = append(s.hosts, host), append(s.sources, name)
			locality.Endpoints = append(locality.Endpoints, discovery.Endpoint{Addresses: []string{host}})
		}
		r := &counting{}
		w, err := s.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		round := func(last int, err error) {
			r.mu.Lock()
			r.told = 0
			r.mu.Unlock()
			for i, name := range names {
				if err != nil {
					name.Fail(err)
				} else {
					_ = name.say(fmt.Sprintf("10.%d.%d.%d:1", i/250, i%250, last))
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		f(r, round)
		w.Close()
		round(9, nil)
		time.Sleep(time.Hour)
		if r.told > 0 {
			t.Errorf("%d updates after Close", r.told)
		}
	})
}

func TestARoundOfManyNamesIsToldOnce(t *testing.T) {
	thousand(t, func(r *counting, round func(int, error)) {
		const few = 3
		round(1, nil)
		if r.told != 1 || r.last() != strings.Repeat(".1", 1000) {
			t.Errorf("%d updates in the first round, want one with all names", r.told)
		}
		if round(1, nil); r.told > 0 {
			t.Errorf("%d updates in a round without changes, want none", r.told)
		}
		if round(2, nil); r.told > few || r.last() != strings.Repeat(".2", 1000) {
			t.Errorf("%d updates in a round that changes all names, want a few", r.told)
		}
		round(0, errors.New("server misbehaving"))
		if r.told > few || r.err == nil || len(r.err.Error()) > 300 || !strings.Contains(r.err.Error(), "and 996 more") {
			t.Errorf("%d updates in a failing round, last error %.300v; want a few with a short error", r.told, r.err)
		}
		if round(0, errors.New("server misbehaving")); r.told > 0 {
			t.Errorf("%d updates in another failing round, want none", r.told)
		}
		if round(2, nil); r.told > few || r.err != nil {
			t.Errorf("%d updates after recovery, last error %v", r.told, r.err)
		}
	})
}

func TestARoundThatIsNotTakenIsToldAgain(t *testing.T) {
	thousand(t, func(r *counting, round func(int, error)) {
		round(1, nil)
		r.begin(errors.New("no"))
		round(2, nil)
		r.begin(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r.told != 1 || r.last() != strings.Repeat(".2", 1000) {
			t.Errorf("%d updates after a rejection, want 1", r.told)
		}
	})
}

// After ResolveNow, an answer must be sent even if it is the same as before, because the channel
// may have rejected that one.
func TestNamesThatAreAskedForAreToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &counting{}, unsaid(2)
		w, err := strictOf(t, 1, name).Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		round := func(want int) {
			t.Helper()
			r.begin(nil)
			for i, n := range name {
				_ = n.say(fmt.Sprintf("10.0.0.%d:1", i))
			}
			if r.told != want {
				t.Errorf("%d updates, want %d", r.told, want)
			}
		}
		round(1)
		round(0)
		w.ResolveNow()
		round(1)
		round(0)
	})
}

// If the weights of a locality add up to more than the limit, all of them must be scaled down.
func TestLargeWeightsOfNamesWithSeveralAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, name := &counting{}, unsaid(2)
		s := strictOf(t, 1, name, "192.0.2.1")
		for i, weight := range []uint32{math.MaxUint32 - 1001, 1000, 1} {
			s.cluster.answer.Priorities[0].Localities[0].Endpoints[i].Weight = weight
		}
		w, err := s.Start(flat.Receiver(r))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		_ = name[1].say("10.0.1.1:1")
		_ = name[0].say("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
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
		if small := endpoints[3].Weight; small != 333 {
			t.Errorf("the weight 1000 became %d, want 333", small)
		}
	})
}
