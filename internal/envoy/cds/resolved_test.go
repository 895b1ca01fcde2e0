package cds

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// A host name may have an address that the cluster already contains. After the lookups, the answer
// must contain each address once.
func TestResolvedAddressesAreUnique(t *testing.T) {
	for about, test := range map[string]struct{ endpoints, want string }{
		"another address beside a name": {
			`{"endpoint":{"address":{"socketAddress":{"address":"a.test","portValue":1}},"additionalAddresses":[{"address":{"socketAddress":{"address":"10.0.0.9","portValue":1}}}]}}`,
			"10.0.0.1:1 10.0.0.9:1 [2001:db8::1]:1",
		},
		"another address that the name has, too": {
			`{"endpoint":{"address":{"socketAddress":{"address":"a.test","portValue":1}},"additionalAddresses":[{"address":{"socketAddress":{"address":"2001:db8::1","portValue":1}}}]}}`,
			"10.0.0.1:1 [2001:db8::1]:1",
		},
		"another address of one before": {
			`{"endpoint":{"address":{"socketAddress":{"address":"10.0.0.8","portValue":1}},"additionalAddresses":[{"address":{"socketAddress":{"address":"10.0.0.1","portValue":1}}}]}},
			 {"endpoint":{"address":{"socketAddress":{"address":"a.test","portValue":1}}}}`,
			"10.0.0.8:1 10.0.0.1:1 [2001:db8::1]:1",
		},
		"an address in another form": {
			`{"endpoint":{"address":{"socketAddress":{"address":"a.test","portValue":1}}}}, {"endpoint":{"address":{"pipe":{"path":"/a"}}}},
			 {"endpoint":{"address":{"socketAddress":{"address":"2001:db8:0::1","portValue":1}}}}`,
			"10.0.0.1:1 unix:/a [2001:db8::1]:1",
		},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, a := &answerRecorder{}, &fakeLookup{}
				s := strictOf(t, a, `{"loadAssignment":{"clusterName":"x","endpoints":[{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[`+test.endpoints+`]}]}}`)
				w, err := s.Start(flat.Receiver(r))
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				if err := a.succeed("10.0.0.1:1", "[2001:db8::1]:1"); err != nil {
					t.Errorf("answer rejected: %v", err)
				}
				expect(t, r, test.want)
			})
		})
	}
}

type unstartableSource struct{}

func (unstartableSource) Check(bool) error { return errDown }

func (unstartableSource) Start(*discovery.Receiver) (discovery.Started, error) {
	return discovery.Started{}, errors.New("no such resolver")
}

func TestLookupThatDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, names := &answerRecorder{}, newLookups(2)
		s := newStrictSource(t, 1, names)
		s.sources[0] = unstartableSource{}
		w, err := s.Start(flat.Receiver(r))
		if err != nil || s.Check(true) == nil {
			t.Fatal(err, "or Check has found nothing")
		}
		defer w.Close()
		w.ResolveNow()
		if err := names[1].succeed("10.0.0.2:1"); err != nil {
			t.Error(err)
		}
		expect(t, r, "10.0.0.2:1")
	})
}
