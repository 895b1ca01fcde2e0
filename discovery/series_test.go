package discovery_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A management server may name any number of clusters. The metrics must therefore count the whole
// list under the name of the discovery mechanism that sent it.
func TestPartsAreCountedAsTheWhole(t *testing.T) {
	for name, label := range map[string]string{"": "x", "whole": "whole"} {
		metrics, whole := &lbtest.Recorder{}, &scripted{}
		b := of([]discovery.Mechanism{{Name: name, Source: whole, Authority: "whole"}})
		r, err := b.Build(target("x:///shop"), &channel{}, resolver.BuildOptions{MetricsRecorder: metrics})
		if err != nil {
			t.Fatal(err)
		}
		const n = 10_000
		for i := range n {
			part := &scripted{}
			whole.Parts([]discovery.Mechanism{{Name: fmt.Sprint("cluster", i), Source: part}})
			part.say("10.0.0.1:1")
			part.Fail(errors.New("gone"))
		}
		r.Close()
		want := map[string]int64{
			"understudy.source.updates x:///shop " + label + " accepted": 2 * n,
			"understudy.source.updates x:///shop " + label + " failed":   n,
		}
		if got := metrics.Export(); len(got) > 10 || !maps.Equal(got, want) {
			t.Errorf("%d series, want %v", len(got), want)
		}
	}
}
