package channel_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func TestSnapshotsOfManyEndpointsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		cc := &lbtest.ClientConn{}
		policy := balancer.Get("understudy_weighted_round_robin").Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		var state resolver.State
		for i := range n {
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprint(i)}}})
		}
		if err := policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state}); err != nil {
			t.Fatal(err)
		}
		watched := policy.(shell.Watchable)
		defer watched.Watch()()
		seen := map[*shell.Snapshot]bool{}
		for _, sc := range cc.SubConns() {
			sc.Report(connectivity.Ready, nil)
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
			seen[watched.Snapshot()] = true
		}
		time.Sleep(time.Second)
		synctest.Wait()
		last := watched.Snapshot()
		for _, c := range last.Children {
			if c.State != connectivity.Ready {
				t.Fatalf("the last snapshot has %q in %v, want all READY", c.Name, c.State)
			}
		}
		if len(seen) > 2 {
			t.Errorf("%d snapshots were made at the same time, want at most 2", len(seen))
		}
	})
}
