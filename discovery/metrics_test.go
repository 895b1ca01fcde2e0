package discovery_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestUpdatesAreCounted(t *testing.T) {
	metrics := &lbtest.Recorder{}
	cc, a, b := &channel{}, &fakeSource{}, &fakeSource{}
	r, err := newBuilder([]discovery.Mechanism{{Name: "a", Source: a}, {Name: "b", Source: b}}).Build(target("x:///shop"), cc, resolver.BuildOptions{MetricsRecorder: metrics})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string]int64{}
	wantCount := func(source, result string, report func()) {
		t.Helper()
		report()
		if result != "" {
			want["understudy.source.updates x:///shop "+source+" "+result]++
		}
		if got := metrics.Export(); !maps.Equal(got, want) {
			t.Errorf("counts are %v, want %v", got, want)
		}
	}
	wantCount("a", "accepted", func() { a.sendAddresses("10.0.0.1:1") })
	wantCount("a", "", func() { a.sendAddresses("10.0.0.1:1") })
	wantCount("a", "accepted", func() { a.sendAddresses("10.0.0.2:1") })
	wantCount("b", "failed", func() { b.Fail(errors.New("timeout")) })
	wantCount("b", "refused", func() { b.Update(discovery.Answer{}) })
	wantCount("a", "refused", func() { a.sendAddresses("10.0.0.1") })
	wantCount("a", "refused", func() { a.Fail(fmt.Errorf("at the source: %w", &messages.Invalid{})) })
	wantCount("b", "accepted", func() { b.Mechanisms([]discovery.Mechanism{{Name: "c", Source: &fakeSource{}}}) })
	wantCount("a", "refused", func() { a.Rejected(errors.New("bad")) })
	r.Close()
	wantCount("a", "", func() { a.sendAddresses("10.0.0.3:1"); a.Fail(errors.New("closed")) })
}
