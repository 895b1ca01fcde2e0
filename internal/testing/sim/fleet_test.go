package sim

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	fleetFile = flag.String("sim.fleet", "", "write what becomes of a large fleet to this file, for docs/fleet")
	clients   = flag.Int("sim.clients", 2000, "how many clients the large fleet has")
)

// A fleet loses no call to restarts that announce themselves, nor to a lost control
// plane, nor to a tier that is refused or comes back.
func TestFleet(t *testing.T) {
	config := FleetConfig{Clients: 40, Backends: 3, CallEach: 2 * time.Second}
	if *fleetFile != "" {
		config.Clients = *clients
	}
	synctest.Test(t, func(t *testing.T) {
		record, err := RunFleet(config)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, s := range record.Seconds {
			failed += s.Failed
		}
		t.Logf("%d clients: %d KB and %d goroutines each; %d calls failed", config.Clients, record.Bytes>>10, record.Goroutines, failed)
		if failed > 0 {
			t.Errorf("%d calls failed", failed)
		}
		if s := record.Seconds[FleetReturn-1]; s.Calls[0] > 0 || s.Calls[1] == 0 {
			t.Errorf("while p0 is lost: %+v", s)
		}
		if s := record.Seconds[FleetEnd-1]; s.Calls[0] == 0 || s.Calls[1] > 0 || s.Control > 0 {
			t.Errorf("at the end: %+v", s)
		}
		if *fleetFile != "" {
			if err := os.WriteFile(*fleetFile, []byte(table(config, record)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// table writes a record as comma-separated values: the first line is the fleet.
func table(c FleetConfig, r FleetRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%d,%d,%d,%d\n", c.Clients, c.Backends, c.CallEach/time.Millisecond, r.Bytes, r.Goroutines)
	for _, s := range r.Seconds {
		fmt.Fprintf(&b, "%d,%d,%d,%d,%d,%d\n", s.Calls[0], s.Calls[1], s.Connections[0], s.Connections[1], s.Control, s.Failed)
	}
	return b.String()
}
