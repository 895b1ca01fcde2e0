package weightedtarget

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/connectivity"
)

var statesByName = map[string]connectivity.State{
	"READY":             connectivity.Ready,
	"CONNECTING":        connectivity.Connecting,
	"IDLE":              connectivity.Idle,
	"TRANSIENT_FAILURE": connectivity.TransientFailure,
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "../../internal/core/weightedtarget/testdata", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t)
			defer h.policy.Close()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "update":
					var children []string
					for _, arg := range d.CmdArgs {
						children = append(children, arg.Key+"="+arg.Vals[0])
					}
					if err := h.update(strings.Join(children, " "), ""); err != nil {
						d.Fatalf(t, "%v", err)
					}
				case "report":
					h.report(d.CmdArgs[0].Key, statesByName[d.CmdArgs[1].Key])
				default:
					d.Fatalf(t, "unknown command %s", d.Cmd)
				}
				return h.describe()
			})
		})
	})
}
