package discovery_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestUpdatesAreCounted(t *testing.T) {
	metrics := &lbtest.Recorder{}
	cc, a, b := &channel{}, &scripted{}, &scripted{}
	r, err := of([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: b}}).Build(target("x:///shop"), cc, resolver.BuildOptions{MetricsRecorder: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string]int64{}
	then := func(source, result string, told func()) {
		t.Helper()
		told()
		if result != "" {
			want["understudy.source.updates x:///shop "+source+" "+result]++
		}
		if got := metrics.Export(); !maps.Equal(got, want) {
			t.Errorf("counts are %v, want %v", got, want)
		}
	}
	then("a", "accepted", func() { a.say("10.0.0.1:1") })
	then("a", "", func() { a.say("10.0.0.1:1") })
	then("a", "accepted", func() { a.say("10.0.0.2:1") })
	then("b", "failed", func() { b.Fail(errors.New("timeout")) })
	then("b", "refused", func() { b.Update(discovery.Answer{}) })
	then("a", "refused", func() { a.say("10.0.0.1") })
	then("a", "refused", func() { a.Fail(fmt.Errorf("at the source: %w", &clusterfile.Error{})) })
	then("b", "accepted", func() { b.Parts([]discovery.Mechanism{{Name: "c", Source: &scripted{}}}) })
	then("a", "refused", func() { a.Rejected(errors.New("bad")) })
	r.Close()
	then("a", "", func() { a.say("10.0.0.3:1"); a.Fail(errors.New("closed")) })
}
