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

// A management server may send any number of clusters. To limit the number of time series, the
// metrics must count all mechanisms of a list under the name of the mechanism that sent the list.
func TestListMetricsHaveOneLabel(t *testing.T) {
	t.Parallel()
	for name, label := range map[string]string{"": "x", "whole": "whole"} {
		metrics, listSource := &lbtest.Recorder{}, &fakeSource{}
		b := newBuilder([]discovery.Mechanism{{Name: name, Source: listSource, Authority: "whole"}})
		r, err := b.Build(target("x:///shop"), &channel{}, resolver.BuildOptions{MetricsRecorder: metrics})
		if err != nil {
			t.Fatal(err)
		}
		const n = 1000
		for i := range n {
			mechanism := &fakeSource{}
			listSource.Mechanisms([]discovery.Mechanism{{Name: fmt.Sprint("cluster", i), Source: mechanism}})
			mechanism.sendAddresses("10.0.0.1:1")
			mechanism.Fail(errors.New("gone"))
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
