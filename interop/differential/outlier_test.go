package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var five = []string{"a", "b", "c", "d", "e"}

// randomOutlierConfig returns a configuration without the known differences, which have their own
// tests. The maximum is 100 %, because gRPC-Go's ejections otherwise depend on the order of a map.
// There is only one algorithm, because gRPC-Go counts an endpoint twice if two algorithms eject it.
func randomOutlierConfig(r *rand.Rand) string {
	config := fmt.Sprintf(`"interval": "%ds", "baseEjectionTime": "%ds", "maxEjectionTime": "%ds", "maxEjectionPercent": 100,`,
		1+r.IntN(20), r.IntN(60), r.IntN(100))
	switch r.IntN(5) {
	case 0, 1:
		config += fmt.Sprintf(`"successRateEjection": {"stdevFactor": %d, "minimumHosts": %d, "requestVolume": %d},`,
			r.IntN(1900), r.IntN(5), 1+r.IntN(8))
	case 2, 3:
		config += fmt.Sprintf(`"failurePercentageEjection": {"threshold": %d, "enforcementPercentage": 100, "minimumHosts": 1, "requestVolume": %d},`,
			r.IntN(101), 1+r.IntN(8))
	}
	return config
}

func TestOutlierDetectionAgrees(t *testing.T) {
	seen := 0
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			ours, theirs := newOutlierSide(t, ourOutlierDetection), newOutlierSide(t, theirOutlierDetection)
			defer ours.policy.Close()
			defer theirs.policy.Close()
			var history []string
			for step := range 40 {
				switch what := r.IntN(8); {
				case step == 0 || what == 0:
					config := randomOutlierConfig(r)
					ours.update(ourOutlierDetection, config, five)
					theirs.update(theirOutlierDetection, config, five)
					history = append(history, config)
				case what < 6:
					name, ok, failed := five[r.IntN(5)], r.IntN(8), r.IntN(8)
					if theirs.isEjected(name) {
						continue // these calls are counted differently, which is a known difference
					}
					ours.calls(name, ok, failed)
					theirs.calls(name, ok, failed)
					history = append(history, fmt.Sprintf("%s ok=%d failed=%d", name, ok, failed))
				default:
					d := time.Duration(1+r.IntN(25))*time.Second + time.Millisecond
					time.Sleep(d)
					history = append(history, d.String())
				}
				synctest.Wait()
				if got, want := ours.ejected(), theirs.ejected(); got != want {
					t.Fatalf("seed %d: ours ejected %q, theirs %q, after\n%s", seed, got, want, strings.Join(history, "\n"))
				}
				seen += len(theirs.ejected())
			}
		})
	}
	if seen < 500 {
		t.Errorf("only %d ejections, want at least 500", seen)
	}
}

func onBoth(t *testing.T, f func(name string, s *outlierSide)) {
	t.Helper()
	for _, name := range []string{ourOutlierDetection, theirOutlierDetection} {
		synctest.Test(t, func(t *testing.T) {
			s := newOutlierSide(t, name)
			defer s.policy.Close()
			f(name, s)
		})
	}
}

const atHalf = `"failurePercentageEjection": {"threshold": 50, "enforcementPercentage": 100, "minimumHosts": 1, "requestVolume": 5},`

func wantEjected(t *testing.T, what, name string, s *outlierSide, ours, theirs int) {
	t.Helper()
	want := map[string]int{ourOutlierDetection: ours, theirOutlierDetection: theirs}[name]
	if got := len(strings.Fields(s.ejected())); got != want {
		t.Errorf("%s: %s ejected %d, want %d", what, name, got, want)
	}
}

// A50: "Defaults to 100." In gRPC-Go the default is 0.
func TestEnforcementOfTheFailurePercentageDefaults(t *testing.T) {
	onBoth(t, func(name string, s *outlierSide) {
		s.update(name, `"failurePercentageEjection": {"threshold": 50, "minimumHosts": 1, "requestVolume": 5},`, five)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "with the default", name, s, 1, 0)
	})
}

// At most 30 % of five endpoints may be ejected. After the first ejection, gRPC-Go ejects another
// one, because one of five is less than 30 %. With a maximum of 0 %, it ejects none (docs/a50.md).
func TestTheMaximumOfEjections(t *testing.T) {
	for percent, want := range map[int][2]int{0: {1, 0}, 10: {1, 1}, 20: {1, 1}, 30: {1, 2}, 40: {2, 2}, 100: {5, 5}} {
		onBoth(t, func(name string, s *outlierSide) {
			s.update(name, fmt.Sprintf(`%s "maxEjectionPercent": %d,`, atHalf, percent), five)
			for _, e := range five {
				s.calls(e, 0, 10)
			}
			time.Sleep(11 * time.Second)
			synctest.Wait()
			wantEjected(t, fmt.Sprintf("with %d %%", percent), name, s, want[0], want[1])
		})
	}
}

// In gRFC A50, a removed endpoint leaves the map. gRPC-Go still counts it as ejected, and therefore
// ejects no other endpoint.
func TestRemovedEndpointsThatWereEjected(t *testing.T) {
	onBoth(t, func(name string, s *outlierSide) {
		s.update(name, atHalf+`"maxEjectionPercent": 20,`, five)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "before", name, s, 1, 1)
		s.update(name, atHalf+`"maxEjectionPercent": 20,`, []string{"b", "c", "d", "e", "f"})
		s.calls("b", 0, 10)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantEjected(t, "afterwards", name, s, 1, 0)
	})
}

// If both algorithms eject an endpoint, it counts once. In gRPC-Go, it counts twice towards the
// maximum (docs/a50.md).
func TestWhatBothAlgorithmsFind(t *testing.T) {
	onBoth(t, func(name string, s *outlierSide) {
		both := `"successRateEjection": {"stdevFactor": 0, "minimumHosts": 1, "requestVolume": 20},` + atHalf + `"maxEjectionPercent": 40,`
		s.update(name, both, five)
		s.calls("a", 0, 20) // the success rate algorithm ejects a, because calls to b succeed
		s.calls("b", 20, 0)
		s.calls("c", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if name == ourOutlierDetection || s.ejected() == "a" { // in gRPC-Go, the result depends on the order of a map
			wantEjected(t, "found by both", name, s, 2, 1)
		}
	})
}

// A50: "If the number of addresses is less than minimum_hosts, stop." gRPC-Go counts only addresses
// with enough calls.
func TestMinimumHostsOfTheFailurePercentage(t *testing.T) {
	onBoth(t, func(name string, s *outlierSide) {
		s.update(name, strings.Replace(atHalf, `"minimumHosts": 1`, `"minimumHosts": 5`, 1), five)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "one of five was called", name, s, 1, 0)
	})
}

// 7 of 100 is not more than 7 %. An endpoint with the same rate as all others is not an outlier.
// gRPC-Go rounds and gets both wrong.
func TestRatesThatAreEqual(t *testing.T) {
	onBoth(t, func(name string, s *outlierSide) {
		s.update(name, strings.Replace(atHalf, "50", "7", 1)+`"maxEjectionPercent": 100,`, five)
		s.calls("a", 93, 7)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "7 of 100 failed", name, s, 0, 1)
	})
	onBoth(t, func(name string, s *outlierSide) {
		s.update(name, `"successRateEjection": {"stdevFactor": 0, "minimumHosts": 3, "requestVolume": 10}, "maxEjectionPercent": 100,`, five)
		for _, e := range []string{"a", "b", "c"} {
			s.calls(e, 1, 9)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "1 in 10 of each succeeded", name, s, 0, 3)
	})
}
