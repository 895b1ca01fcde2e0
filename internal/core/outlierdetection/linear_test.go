package outlierdetection_test

import (
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// An ejection must visit only the ejected endpoint. The only exception is the ejection of the last
// sound endpoint, which visits all ejected endpoints.
func TestEjectionsTakeLinearTime(t *testing.T) {
	const n = 1000
	for _, emptied := range []bool{false, true} {
		c := core.New[string](drawZero)
		config := outlierscenario.Default()
		config.MaxEjectionPercent, config.ReportEmptied = 100, emptied
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 5, EnforcementPercentage: 100}
		var list []*core.Endpoint[string]
		for range n {
			list = append(list, &core.Endpoint[string]{})
		}
		c.Update(config, list, time.Unix(0, 0))
		for _, e := range list {
			c.Connection(e, core.Connected)
		}
		before := c.Looked()
		changes := 0
		for _, e := range list {
			c.Failed(e, time.Unix(1, 0))
			changes += len(c.Take().Changes)
		}
		if visited := c.Looked() - before; visited > 3*n {
			t.Errorf("emptied=%v: visited %d endpoints for %d ejections", emptied, visited, n)
		}
		if want := map[bool]int{false: n, true: 2 * (n - 1)}[emptied]; changes != want {
			t.Errorf("emptied=%v: the children received %d changes, want %d", emptied, changes, want)
		}
	}
}
