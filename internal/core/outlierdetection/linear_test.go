package outlierdetection_test

import (
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// An ejection visits only the endpoint itself. The exception is the ejection of the last sound
// endpoint, which visits all ejected ones.
func TestAnEjectionIsLinear(t *testing.T) {
	const n = 1000
	for _, emptied := range []bool{false, true} {
		c := core.New[string](never)
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
		told := 0
		for _, e := range list {
			c.Failed(e, time.Unix(1, 0))
			told += len(c.Take().Changes)
		}
		if looked := c.Looked() - before; looked > 3*n {
			t.Errorf("emptied=%v: visited %d endpoints for %d ejections", emptied, looked, n)
		}
		if want := map[bool]int{false: n, true: 2 * (n - 1)}[emptied]; told != want {
			t.Errorf("emptied=%v: the children received %d changes, want %d", emptied, told, want)
		}
	}
}
