package understudy_test

import (
	"testing"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/topology"
)

// The part of a tier that is READY reaches priority through the whole tree, and with it
// the calls go over and come back: none fails or waits on the way.
func TestTooLittleOfATierIsLeft(t *testing.T) {
	for name, settings := range map[string]topology.Settings{
		"alone":                  {MinReady: 0.6},
		"with outlier detection": {MinReady: 0.6, OutlierDetection: true},
	} {
		t.Run(name, func(t *testing.T) {
			inFleetWith(t, settings, func(h *fleet) {
				lose := func(endpoints ...string) {
					for _, e := range endpoints {
						h.cc.SubConn(e).Report(connectivity.Connecting, nil)
					}
				}
				want := func(what, tier string) {
					t.Helper()
					if in, failed := h.calls(1e9); in[tier] < 190 || failed > 0 {
						t.Errorf("%s: calls %v, %d failed; want them in %s", what, in, failed, tier)
					}
				}
				want("all are READY", "a")
				h.keep = map[string]bool{"a0": true, "a1": true, "a2": true}
				lose("a0", "a1")
				want("three of five are READY", "a")
				lose("a2")
				want("two of five are READY", "b")
				h.keep = nil
				h.settle()
				want("all are READY again", "a")
			}, 5, 5)
		})
	}
}
