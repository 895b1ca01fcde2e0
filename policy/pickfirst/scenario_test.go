package pickfirst

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	scenario "github.com/understudy-lb/understudy/internal/testing/pickfirstscenario"
)

// TestScenarios runs the core's scenarios on the real policy, once for each way to request health
// updates.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../internal/core/pickfirst/testdata/*/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d scenario files, want at least 6; error: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, mark := range []func(resolver.State) resolver.State{stateattr.EnableHealthListener, grpcpickfirst.EnableHealthListener} {
				synctest.Test(t, func(t *testing.T) {
					scenario.Run(t, file, func() scenario.Target { return newRecorder(balancer.Get(Name), mark) })
				})
			}
		})
	}
}
