package sourcetest_test

import (
	"fmt"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

type fixedSource []string

func (f fixedSource) Check(bool) error { return nil }

func (f fixedSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	var near discovery.Locality
	for _, address := range f {
		near.Endpoints = append(near.Endpoints, discovery.Endpoint{Addresses: []string{address}})
	}
	r.Trying("looking around")
	err := r.Update(discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{near}}}})
	if err != nil {
		r.Fail(err)
	}
	return discovery.Started{}, nil
}

// TestFixed tests the source fixedSource.
func TestFixed(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) discovery.Source { return fixedSource{"10.0.0.1:443", "10.0.0.2:443"} })
}

// The program prints the reports of two sources, which Record has recorded.
func Example() {
	for _, source := range []fixedSource{{"10.0.0.1:443", "10.0.0.2:443"}, {"10.0.0.1"}} {
		receiver, take := sourcetest.Record()
		if _, err := source.Start(receiver); err != nil {
			fmt.Println(err)
		}
		for _, report := range take() {
			fmt.Println(report)
		}
	}
	// Output:
	// trying: looking around
	// answer 10.0.0.1:443 10.0.0.2:443
	// trying: looking around
	// answer 10.0.0.1
	// fail: endpoint 0 of locality "/" in priority 0: address "10.0.0.1" given, want host:port, or unix:/path
}
