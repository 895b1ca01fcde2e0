//go:build torture

// Package torture runs channels and backends in real processes under faults of the operating
// system. It checks their calls against rules. A seed determines the schedule of the faults.
package torture

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	worldsFor = flag.Duration("torture.for", 0, "begin worlds for this time, at least one; 0 runs none")
	firstSeed = flag.Uint64("torture.seed", 0, "seed of the first world; 0 for a random one")
	faultsFor = flag.Duration("torture.faults", 35*time.Second, "how long the faults of a world last")
	keepLogs  = flag.Bool("torture.log", false, "also keep the event logs of worlds that pass")
	onlyFault = flag.String("torture.only", "", "this kind of fault alone; empty for a random selection")
)

const roleVariable = "UNDERSTUDY_TORTURE_ROLE"

// roles are the programs in this test binary. Each program gets its configuration as JSON in an
// environment variable, reads commands from stdin, and ends when stdin ends.
var roles = map[string]func() error{
	"backend": runBackend,
	"client":  runClient,
	"dns":     runDNS,
	"serve":   runServe,
	"ads":     runControlPlane,
	"api":     runAPIServer,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// now returns the monotonic time of the machine, which is the same in all processes.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
