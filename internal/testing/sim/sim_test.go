package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	firstSeed = flag.Uint64("sim.seed", 1, "first seed; 0 for a random one")
	seeds     = flag.Int("sim.seeds", 5, "number of seeds")
	runFor    = flag.Duration("sim.for", 0, "run new seeds for this long instead of -sim.seeds")
	kind      = flag.String("sim.source", "", "failover, eds, file or mixed; empty for a random one")
	day       = flag.Bool("sim.day", false, "run each world for a day, with an event every four minutes on average")
	pickFirst = flag.Bool("sim.pickfirst", false, "set pickFirst in all targets")
	loadOnly  = flag.Bool("sim.load", false, "run only the load at the end of worlds, all with overflow")
	keepLogs  = flag.Bool("sim.log", false, "also keep the event logs of worlds that pass")
)

func TestWorlds(t *testing.T) {
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 48)
	}
	begin := time.Now()
	for i := 0; ; i++ {
		if *runFor > 0 && time.Since(begin) > *runFor || *runFor == 0 && i >= *seeds {
			return
		}
		if !live(t, first+uint64(i), "") && *runFor > 0 {
			return
		}
	}
}

// longestLife limits the real time of a simulation, so that the test ends even if a simulation
// hangs. A simulated day takes only a few seconds.
const longestLife = 10 * time.Minute

func live(t *testing.T, seed uint64, pair string) bool {
	name := strings.Join(strings.Fields(fmt.Sprint("seed ", seed, " ", pair, " ", *kind)), " ")
	return t.Run(name, func(t *testing.T) {
		dir := t.TempDir()
		hung := time.AfterFunc(longestLife, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("%s has not ended after %v", name, longestLife))
		})
		defer hung.Stop()
		length, eventEach := time.Hour, 2*time.Minute
		switch {
		case *loadOnly:
			length = 0
		case *day:
			length, eventEach = 24*time.Hour, 4*time.Minute
		}
		synctest.Test(t, func(t *testing.T) {
			log, calls, err := Run(seed, Config{Length: length, EventEach: eventEach, Kind: *kind, Dir: dir, PickFirst: *pickFirst, Pair: pair, Load: *loadOnly})
			if err != nil {
				t.Fatal(err)
			}
			broken := log.Broken()
			t.Logf("%s: %v", name, calls)
			if len(broken) == 0 && !*keepLogs {
				return
			}
			path := filepath.Join(os.TempDir(), fmt.Sprintf("understudy-sim-%s%d.log", strings.ReplaceAll(pair+"-", "+", "-"), seed))
			if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
				t.Error(err)
			}
			t.Logf("%s: the event log is in %s", name, path)
			for _, line := range broken {
				t.Error(line)
			}
		})
	})
}
