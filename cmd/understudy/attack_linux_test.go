package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// "make attack" sets -attack.for, the duration of each attack. The test then fails if a probe takes
// too long. Without the flag, each connection attacks only once, and the durations of the probes
// are only logged.
var (
	attackDuration = flag.Duration("attack.for", 0, "how long each attack lasts, and probes are timed")
	attackName     = flag.String("attack.by", "", "of the attacker's own process: the attack")
	attackAddress  = flag.String("attack.at", "", "of the attacker's own process: the address")
	attackFilter   = flag.String("attack.only", "", "this attack alone")
)

const (
	attackConnections = 32  // concurrent connections of an attack
	maxMemoryMB       = 200 // limit on the server's memory in MB
	maxProbeDelay     = 50 * time.Millisecond
)

// During an attack, the server continues to serve other clients, and its memory stays below a
// limit.
func TestAttacks(t *testing.T) {
	if *attackName != "" {
		attackServer(*attackName, *attackAddress)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		if *attackFilter == "" || *attackFilter == name {
			t.Run(name, func(t *testing.T) { testAttack(t, name) })
		}
	}
}

// testAttack attacks a server from another process. During the attack, it probes the server as a
// normal client does. At the end, it checks the server's memory.
func testAttack(t *testing.T, name string) {
	s := startServe(t, nil, "--log-level", "debug")
	conn := s.dial(t)
	attacker := exec.Command("nice", os.Args[0], "-test.run", "^TestAttacks$", "-attack.by", name, "-attack.at", s.address, "-attack.for", attackDuration.String())
	must(t, attacker.Start())
	attackDone := make(chan error, 1)
	go func() { attackDone <- attacker.Wait() }()
	var durations []time.Duration
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		begin := time.Now()
		fetchEndpoints(t, conn)
		s.checkHealth(t, conn)
		durations = append(durations, time.Since(begin))
		select {
		case err := <-attackDone:
			must(t, err)
			running = false
		case <-ticker.C:
		}
	}
	slices.Sort(durations)
	quantile := func(share float64) time.Duration {
		return durations[int(share*float64(len(durations)-1))].Round(100 * time.Microsecond)
	}
	memory := peakMemory(t, s.Process.Pid)
	t.Logf("%s: %d probes, half within %v, 99%% within %v, 99.9%% within %v, all within %v; %d MB", name, len(durations), quantile(0.5), quantile(0.99), quantile(0.999), quantile(1), memory)
	if memory > maxMemoryMB && !raceEnabled {
		t.Errorf("the server took %d MB, want at most %d", memory, maxMemoryMB)
	}
	if *attackDuration > 0 && quantile(1) > maxProbeDelay {
		t.Errorf("a probe took %v, want at most %v", quantile(1), maxProbeDelay)
	}
}

func fetchEndpoints(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	must(t, err)
	must(t, stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}}))
	r, err := stream.Recv()
	must(t, err)
	if len(r.GetResources()) != 1 {
		t.Fatalf("a client has %v, want its endpoints", r)
	}
}

func peakMemory(t *testing.T, pid int) (mb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	_, err = fmt.Sscan(rest, &kb)
	must(t, err)
	return kb / 1000
}

// attackServer attacks the server over many concurrent connections. When an attack ends, the next
// attack begins on a new connection.
func attackServer(name, address string) {
	rounds, limit, ctx := 1, time.Second, context.Background()
	if *attackDuration > 0 {
		rounds, limit = 1<<30, 5*time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *attackDuration)
		defer cancel()
	}
	var wg sync.WaitGroup
	for i := range attackConnections {
		wg.Go(func() {
			for n := 0; n < rounds && ctx.Err() == nil; n++ {
				conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					continue
				}
				ctx, cancel := context.WithTimeout(ctx, limit)
				_ = attacks[name](ctx, discoveryv3.NewAggregatedDiscoveryServiceClient(conn), i<<20+n)
				cancel()
				_ = conn.Close()
			}
		})
	}
	wg.Wait()
}
