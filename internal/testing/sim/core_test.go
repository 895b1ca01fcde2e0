package sim

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// If only one endpoint works, all calls must succeed. With outlier detection, a third of the calls
// may fail, because ejected endpoints come back while they still fail.
func TestJudgeSurvivor(t *testing.T) {
	for name, test := range map[string]struct {
		answered    int
		detects     bool
		secondFails bool // the survivor's priority has a second endpoint, which fails its calls
		above       bool // a priority above has an endpoint that hangs and one that fails its calls
		cutShort    bool // calls to the second endpoint take a minute, and its connections are reset meanwhile
		broken      int
	}{
		"all":                        {answered: 100},
		"one fails":                  {answered: 99, broken: 1},
		"a third, with detection":    {answered: 67, detects: true},
		"too many, with detection":   {answered: 60, detects: true, broken: 1},
		"nothing, without detection": {broken: 1},
		"half of a priority works":   {answered: 40, detects: true, secondFails: true},
		"worse than no detection":    {answered: 39, detects: true, secondFails: true, broken: 1},
		"one hangs and one fails":    {detects: true, above: true},
		"half is always cut short":   {answered: 40, detects: true, cutShort: true},
		"worse than what is cut":     {answered: 39, detects: true, cutShort: true, broken: 1},
	} {
		w := &World{Log: newLog(), knownTruth: EndpointSet{flat([]string{firstTier, secondTier})}, conditions: map[string]*condition{firstTier: {up: true}, secondTier: {up: test.secondFails, code: codes.Internal}}}
		if test.above {
			w.knownTruth = EndpointSet{flat([]string{"hangs", "fails"}), w.knownTruth[0]}
			w.conditions["hangs"], w.conditions["fails"] = &condition{up: true, hang: true}, &condition{up: true, code: codes.Unavailable}
		}
		if test.cutShort {
			w.pair, w.judge = &pair{latency: time.Minute}, newJudge(w)
			w.conditions[secondTier] = &condition{up: true, resetAt: time.Now()}
		}
		w.judgeSurvivor(firstTier, test.answered, 100, test.detects, errors.New("unavailable"))
		if got := len(w.Log.Broken()); got != test.broken {
			t.Errorf("%s: %d broken rules, want %d", name, got, test.broken)
		}
	}
}
