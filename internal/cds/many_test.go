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

// counting counts answers and failures, and keeps the last of them.
type counting struct {
	mu      sync.Mutex
	told    int
	answer  discovery.Answer
	err     error // the last failure
	refusal error // of answers
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

// begin counts from here on, and refuses answers with the error.
func (r *counting) begin(refusal error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.refusal = 0, refusal
}

// last returns the last byte of each endpoint's address.
func (r *counting) last() (all string) {
	for _, at := range addressesOf(r.answer) {
		at = strings.TrimSuffix(at, ":1")
		all += at[strings.LastIndexByte(at, '.'):]
	}
	return all
}

// thousand runs f with a cluster of a thousand names, each of which has had an answer.
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
			t.Errorf("told %d times after Close", r.told)
		}
	})
}

// A round of look-ups of many names costs a look at each name, or a few: not one at all names
// for each of them.
func TestARoundOfManyNamesIsToldOnce(t *testing.T) {
	thousand(t, func(r *counting, round func(int, error)) {
		const few = 3
		round(1, nil)
		if r.told != 1 || r.last() != strings.Repeat(".1", 1000) {
			t.Errorf("told %d times of the first round, want once, of all names", r.told)
		}
		if round(1, nil); r.told > 0 {
			t.Errorf("told %d times of a round that changes nothing, want never", r.told)
		}
		if round(2, nil); r.told > few || r.last() != strings.Repeat(".2", 1000) {
			t.Errorf("told %d times of a round that changes all, want a few times", r.told)
		}
		round(0, errors.New("server misbehaving"))
		if r.told > few || r.err == nil || len(r.err.Error()) > 300 || !strings.Contains(r.err.Error(), "and 996 more") {
			t.Errorf("told %d times of a round that fails, last %.300v; want a few times, and a short error", r.told, r.err)
		}
		if round(0, errors.New("server misbehaving")); r.told > 0 {
			t.Errorf("told %d times of another round that fails in the same way, want never", r.told)
		}
		if round(2, nil); r.told > few || r.err != nil {
			t.Errorf("told %d times of a round that is well again, last %v", r.told, r.err)
		}
	})
}

// What the channel did not take is passed on again, although nothing has changed.
func TestARoundThatIsNotTakenIsToldAgain(t *testing.T) {
	thousand(t, func(r *counting, round func(int, error)) {
		round(1, nil)
		r.begin(errors.New("no"))
		round(2, nil)
		r.begin(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r.told != 1 || r.last() != strings.Repeat(".2", 1000) {
			t.Errorf("told %d times after a refusal, want once", r.told)
		}
	})
}

// Nor is what was asked for kept back: the channel may have refused what is known.
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
				t.Errorf("told %d times, want %d", r.told, want)
			}
		}
		round(1)
		round(0)
		w.ResolveNow()
		round(1)
		round(0)
	})
}

// Each address of a name has the name's weight. Where their sum is more than a locality may
// have, all become smaller, and none is lost.
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
			t.Errorf("the answer is refused: %v", err)
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
			t.Errorf("the weight 1000 becomes %d, want a third as of the others", small)
		}
	})
}
