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
	fleetFile = flag.String("sim.fleet", "", "write the record of a large fleet to this file, for docs/fleet")
	clients   = flag.Int("sim.clients", 2000, "number of clients in the large fleet")
)

// No call of a fleet fails when backends restart gracefully, when the management server fails, and
// when the first priority is lost and returns.
func TestFleet(t *testing.T) {
	config := FleetConfig{Clients: 40, Backends: 3, CallEach: 2 * time.Second}
	if *fleetFile != "" {
		config.Clients = *clients
	}
	var record FleetRecord
	synctest.Test(t, func(t *testing.T) {
		var err error
		if record, err = RunFleet(config); err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, s := range record.Seconds {
			failed += s.Failed
		}
		t.Logf("%d clients: %d KB and %d goroutines each; %d calls failed", config.Clients, record.Cost.Bytes>>10, record.Cost.Goroutines, failed)
		if failed > 0 {
			t.Errorf("%d calls failed", failed)
		}
		for i := range 2 * config.Backends {
			inUse := i < config.Backends
			if s := record.Seconds[FleetReturn-1]; (s.Calls[i] > 0) == inUse {
				t.Errorf("while p0 is lost: %+v", s)
			}
			if s := record.Seconds[FleetEnd-1]; (s.Calls[i] > 0) != inUse || s.Control > 0 {
				t.Errorf("at the end: %+v", s)
			}
		}
	})
	if *fleetFile != "" {
		if err := os.WriteFile(*fleetFile, []byte(table(config, record, connectionCost(t, config))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// connectionCost returns the cost of one connection to a backend, which includes the server's side.
func connectionCost(t *testing.T, config FleetConfig) (each Cost) {
	t.Helper()
	const few, many = 1, 5
	config.Clients = min(config.Clients, 500)
	var costs [2]Cost
	for i, backends := range []int{few, many} {
		config.Backends = backends
		synctest.Test(t, func(t *testing.T) {
			var err error
			if costs[i], err = FleetCost(config); err != nil {
				t.Fatal(err)
			}
		})
	}
	return costs[1].minus(costs[0]).perClient(many - few)
}

func TestFleetCost(t *testing.T) {
	each := connectionCost(t, FleetConfig{Clients: 40, Backends: 3, CallEach: 2 * time.Second})
	t.Logf("%d KB and %d goroutines a connection", each.Bytes>>10, each.Goroutines)
	if each.Goroutines < 4 || each.Goroutines > 12 || each.Bytes < 20<<10 || each.Bytes > 400<<10 {
		t.Errorf("a connection costs %+v", each)
	}
}

func table(c FleetConfig, r FleetRecord, connection Cost) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%d,%d,%d,%d,%d,%d\n", c.Clients, c.Backends, c.CallEach/time.Millisecond, r.Cost.Bytes, r.Cost.Goroutines, connection.Bytes, connection.Goroutines)
	for _, s := range r.Seconds {
		for _, n := range append(append(s.Calls, s.Connections...), s.Control) {
			fmt.Fprintf(&b, "%d,", n)
		}
		fmt.Fprintf(&b, "%d\n", s.Failed)
	}
	return b.String()
}
