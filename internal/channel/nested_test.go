package channel_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

const nestedPriorities = `{"priorities": ["a"], "children": {"a": {"config": [{"understudy_priority": {
	"priorities": ["a", "b"], "children": {
		"a": {"config": [{"understudy_pick_first": {}}]},
		"b": {"config": [{"understudy_pick_first": {}}]}}}}]}}}`

// A source's names for priorities apply only to the outermost priority policy. The log of a nested
// priority policy has the names in the policy's own configuration.
func TestNestedPriorityHasOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		state := stateattr.SetChannel(resolver.State{Endpoints: []resolver.Endpoint{endpointAt("x", "a", "a"), endpointAt("y", "a", "b")}},
			&stateattr.Channel{Names: map[string]string{"a": "outer"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		cc := openTree(t, nestedPriorities, state)
		cc.SubConn("x").Report(connectivity.Connecting, nil)
		cc.SubConn("x").Report(connectivity.TransientFailure, errors.New("refused"))
		synctest.Wait()
		if got := log.String(); !strings.Contains(got, `from="p0 a" to="p1 b"`) {
			t.Errorf("logged %s, want a failover from p0 a to p1 b", got)
		}
	})
}
