package understudy_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/priority"
)

// nestedPriorities has a priority policy below another one, with children of the same names.
const nestedPriorities = `{"priorities": ["a"], "children": {"a": {"config": [{"understudy_priority": {
	"priorities": ["a", "b"], "children": {
		"a": {"config": [{"understudy_pick_first": {}}]},
		"b": {"config": [{"understudy_pick_first": {}}]}}}}]}}}`

// What a source says of a priority is not said of a child further below that has its name.
func TestAnInnerPriorityHasItsOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc := &lbtest.ClientConn{}
		builder := balancer.Get(priority.Name)
		config, err := builder.(balancer.ConfigParser).ParseConfig([]byte(nestedPriorities))
		if err != nil {
			t.Fatal(err)
		}
		policy := builder.Build(cc, balancer.BuildOptions{})
		defer policy.Close()
		endpoint := func(address string, path ...string) resolver.Endpoint {
			return hierarchy.Set(resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}, path...)
		}
		var log bytes.Buffer
		state := hierarchy.SetChannel(resolver.State{Endpoints: []resolver.Endpoint{endpoint("x", "a", "a"), endpoint("y", "a", "b")}},
			&hierarchy.Channel{Names: map[string]string{"a": "outer"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: config, ResolverState: state}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cc.SubConn("x").Report(connectivity.Connecting, nil)
		cc.SubConn("x").Report(connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait()
		if got := log.String(); !strings.Contains(got, `from="p0 a" to="p1 b"`) {
			t.Errorf("logged %s, want a failover from p0 a to p1 b", got)
		}
	})
}
