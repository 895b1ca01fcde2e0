package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var fiveEndpoints = []string{"a", "b", "c", "d", "e"}

// randomOutlierConfig returns a configuration for which no difference is known. The known
// differences have their own tests. maxEjectionPercent is 100, because gRPC-Go's ejections
// otherwise depend on the order of a map. There is at most one algorithm, because gRPC-Go counts
// an endpoint twice if two algorithms eject it.
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
	ejections := 0
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
					ours.update(ourOutlierDetection, config, fiveEndpoints)
					theirs.update(theirOutlierDetection, config, fiveEndpoints)
					history = append(history, config)
				case what < 6:
					name, ok, failed := fiveEndpoints[r.IntN(5)], r.IntN(8), r.IntN(8)
					if theirs.isEjected(name) {
						continue // a known difference: the policies count calls to ejected endpoints differently
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
				ejections += len(theirs.ejected())
			}
		})
	}
	if ejections < 500 {
		t.Errorf("only %d ejections, want at least 500", ejections)
	}
}

func testBoth(t *testing.T, f func(name string, s *outlierSide)) {
	t.Helper()
	for _, name := range []string{ourOutlierDetection, theirOutlierDetection} {
		synctest.Test(t, func(t *testing.T) {
			s := newOutlierSide(t, name)
			defer s.policy.Close()
			f(name, s)
		})
	}
}

const halfThreshold = `"failurePercentageEjection": {"threshold": 50, "enforcementPercentage": 100, "minimumHosts": 1, "requestVolume": 5},`

func wantEjected(t *testing.T, what, name string, s *outlierSide, ours, theirs int) {
	t.Helper()
	want := map[string]int{ourOutlierDetection: ours, theirOutlierDetection: theirs}[name]
	if got := len(strings.Fields(s.ejected())); got != want {
		t.Errorf("%s: %s ejected %d, want %d", what, name, got, want)
	}
}

// gRFC A50: "Defaults to 100." In gRPC-Go, the default is 0.
func TestDefaultEnforcementOfFailurePercentage(t *testing.T) {
	testBoth(t, func(name string, s *outlierSide) {
		s.update(name, `"failurePercentageEjection": {"threshold": 50, "minimumHosts": 1, "requestVolume": 5},`, fiveEndpoints)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "with the default", name, s, 1, 0)
	})
}

// With a maximum of 30 %, only one of five endpoints may be ejected. gRPC-Go ejects a second one,
// because one of five is less than 30 %. With a maximum of 0 %, gRPC-Go ejects none (docs/a50.md).
func TestMaxEjectionPercent(t *testing.T) {
	for percent, want := range map[int][2]int{0: {1, 0}, 10: {1, 1}, 20: {1, 1}, 30: {1, 2}, 40: {2, 2}, 100: {5, 5}} {
		testBoth(t, func(name string, s *outlierSide) {
			s.update(name, fmt.Sprintf(`%s "maxEjectionPercent": %d,`, halfThreshold, percent), fiveEndpoints)
			for _, e := range fiveEndpoints {
				s.calls(e, 0, 10)
			}
			time.Sleep(11 * time.Second)
			synctest.Wait()
			wantEjected(t, fmt.Sprintf("with %d %%", percent), name, s, want[0], want[1])
		})
	}
}

// In gRFC A50, a removed endpoint is removed from the map. gRPC-Go continues to count it as
// ejected, and therefore ejects no other endpoint.
func TestRemovedEjectedEndpoints(t *testing.T) {
	testBoth(t, func(name string, s *outlierSide) {
		s.update(name, halfThreshold+`"maxEjectionPercent": 20,`, fiveEndpoints)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "before", name, s, 1, 1)
		s.update(name, halfThreshold+`"maxEjectionPercent": 20,`, []string{"b", "c", "d", "e", "f"})
		s.calls("b", 0, 10)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantEjected(t, "afterwards", name, s, 1, 0)
	})
}

// If both algorithms eject an endpoint, it must count once towards the maximum. In gRPC-Go, it
// counts twice (docs/a50.md).
func TestEndpointEjectedByBothAlgorithms(t *testing.T) {
	testBoth(t, func(name string, s *outlierSide) {
		bothAlgorithms := `"successRateEjection": {"stdevFactor": 0, "minimumHosts": 1, "requestVolume": 20},` + halfThreshold + `"maxEjectionPercent": 40,`
		s.update(name, bothAlgorithms, fiveEndpoints)
		s.calls("a", 0, 20) // the success rate algorithm ejects a, because all calls to b succeed
		s.calls("b", 20, 0)
		s.calls("c", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if name == ourOutlierDetection || s.ejected() == "a" { // in gRPC-Go, the result depends on the order of a map
			wantEjected(t, "found by both", name, s, 2, 1)
		}
	})
}

// gRFC A50: "If the number of addresses is less than minimum_hosts, stop." gRPC-Go counts only the
// addresses with enough calls.
func TestMinimumHostsOfFailurePercentage(t *testing.T) {
	testBoth(t, func(name string, s *outlierSide) {
		s.update(name, strings.Replace(halfThreshold, `"minimumHosts": 1`, `"minimumHosts": 5`, 1), fiveEndpoints)
		s.calls("a", 0, 10)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "one of five was called", name, s, 1, 0)
	})
}

// An endpoint must not be ejected if its failure percentage equals the threshold, or if all
// endpoints have the same success rate. gRPC-Go ejects endpoints in both cases, because of
// rounding errors.
func TestEqualRates(t *testing.T) {
	testBoth(t, func(name string, s *outlierSide) {
		s.update(name, strings.Replace(halfThreshold, "50", "7", 1)+`"maxEjectionPercent": 100,`, fiveEndpoints)
		s.calls("a", 93, 7)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "7 of 100 failed", name, s, 0, 1)
	})
	testBoth(t, func(name string, s *outlierSide) {
		s.update(name, `"successRateEjection": {"stdevFactor": 0, "minimumHosts": 3, "requestVolume": 10}, "maxEjectionPercent": 100,`, fiveEndpoints)
		for _, e := range []string{"a", "b", "c"} {
			s.calls(e, 1, 9)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		wantEjected(t, "1 in 10 of each succeeded", name, s, 0, 3)
	})
}
