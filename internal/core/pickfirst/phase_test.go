package pickfirst_test

import (
	"errors"
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// An empty list ends all attempts and the connection. If a pass has failed before, the phase stays
// PhaseRetrying until a connection succeeds and, with health checks, until the server is healthy.
func TestPhaseAfterEmptyList(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		about  string
		events func(*core.Core)
		want   core.Phase
	}{
		{"connecting", func(*core.Core) {}, core.PhaseIdle},
		{"connected", func(c *core.Core) { c.Report(0, 0, core.Ready, nil) }, core.PhaseIdle},
		{"failed", func(c *core.Core) { c.Report(0, 0, core.TransientFailure, refused) }, core.PhaseRetrying},
		{"failed, then connected, but not healthy yet", func(c *core.Core) {
			c.Report(0, 0, core.TransientFailure, refused)
			c.Report(0, 0, core.Ready, nil)
		}, core.PhaseRetrying},
		{"failed, then healthy", func(c *core.Core) {
			c.Report(0, 0, core.TransientFailure, refused)
			c.Report(0, 0, core.Ready, nil)
			c.Health(0, core.Ready, nil)
		}, core.PhaseIdle},
	} {
		var c core.Core
		c.SetHealth(true)
		c.Update([]int{-1})
		test.events(&c)
		c.Update(nil)
		if got := c.Phase(); got != test.want {
			t.Errorf("%s: after an empty list the phase is %v, want %v", test.about, got, test.want)
		}
	}
}
