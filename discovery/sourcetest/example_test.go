package sourcetest_test

import (
	"fmt"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

type fixed []string

func (f fixed) Check(bool) error { return nil }

func (f fixed) Start(r *discovery.Receiver) (discovery.Started, error) {
	var near discovery.Locality
	for _, address := range f {
		near.Endpoints = append(near.Endpoints, discovery.Endpoint{Addresses: []string{address}})
	}
	r.Trying("looking around")
	err := r.Update(discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{near}}}})
	if err != nil {
		r.Fail(discovery.Mistake(err)) // trying again would not help
	}
	return discovery.Started{}, nil
}

// TestFixed shows how a source is tested.
func TestFixed(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) discovery.Source { return fixed{"10.0.0.1:443", "10.0.0.2:443"} })
}

// Record returns a receiver that records what a source reports.
func Example() {
	for _, source := range []fixed{{"10.0.0.1:443", "10.0.0.2:443"}, {"10.0.0.1"}} {
		receiver, take := sourcetest.Record()
		if _, err := source.Start(receiver); err != nil {
			fmt.Println(err)
		}
		for _, told := range take() {
			fmt.Println(told)
		}
	}
	// Output:
	// trying: looking around
	// answer 10.0.0.1:443 10.0.0.2:443
	// trying: looking around
	// answer 10.0.0.1
	// fail: endpoint 0 of locality "/" in priority 0: address "10.0.0.1" given, want host:port, or unix:/path
}
