// Package flat turns a flat list of endpoints into a discovery.Answer, for tests.
package flat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
)

type Endpoint struct {
	Address string
	Weight  uint32
	Health  discovery.Health
	// Priority is 0 for the highest priority. Gaps in the numbers don't create empty priorities.
	Priority uint32
	// Locality is region/zone/sub_zone. The sub-zone can be left out, and so can the zone with it.
	Locality string
}

func Answer(endpoints ...Endpoint) discovery.Answer {
	sorted := slices.Clone(endpoints)
	slices.SortStableFunc(sorted, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Locality, b.Locality))
	})
	answer := discovery.Answer{Service: "cluster"}
	for i, e := range sorted {
		if i == 0 || e.Priority != sorted[i-1].Priority {
			answer.Priorities = append(answer.Priorities, discovery.Priority{})
		}
		p := &answer.Priorities[len(answer.Priorities)-1]
		if len(p.Localities) == 0 || e.Locality != sorted[i-1].Locality {
			name := append(strings.SplitN(e.Locality, "/", 3), "", "")
			p.Localities = append(p.Localities, discovery.Locality{Region: name[0], Zone: name[1], SubZone: name[2]})
		}
		l := &p.Localities[len(p.Localities)-1]
		l.Endpoints = append(l.Endpoints, discovery.Endpoint{Addresses: []string{e.Address}, Weight: e.Weight, Health: e.Health})
	}
	return answer
}

// Empty returns an answer that says it has no endpoints on purpose.
func Empty() discovery.Answer { return discovery.Answer{Service: "cluster", Empty: true} }

type Sink interface {
	Update(discovery.Answer) error
	Fail(error)
}

func Receiver(taker Sink) *discovery.Receiver {
	return new(discovery.Receiver).With(discovery.Hooks{Update: taker.Update, Fail: taker.Fail})
}
