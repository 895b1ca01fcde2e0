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
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// "make attack" sets -attack.for, the duration of each attack. The test then fails if a probe takes
// too long. Without the flag, each attack uses a few streams, and the durations of probes are only
// logged.
var (
	attackFor  = flag.Duration("attack.for", 0, "how long each attack lasts, and probes are timed")
	attackBy   = flag.String("attack.by", "", "of the attacker's own process: the attack")
	attackAt   = flag.String("attack.at", "", "of the attacker's own process: the address")
	attackOnly = flag.String("attack.only", "", "this attack alone")
)

const (
	attackers  = 32  // concurrent connections of an attack
	mostMemory = 200 // limit on the server's memory in MB
	mostDelay  = 50 * time.Millisecond
)

// Attacks neither prevent the server from serving other clients nor raise its memory above a limit.
func TestAttacks(t *testing.T) {
	if *attackBy != "" {
		attackServer(*attackBy, *attackAt)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		if *attackOnly == "" || *attackOnly == name {
			t.Run(name, func(t *testing.T) { withstand(t, name) })
		}
	}
}

// withstand attacks a server from another process. In the meantime it probes the server like a
// normal client. At the end it checks the server's memory.
func withstand(t *testing.T, name string) {
	s := serving(t, nil, "--log-level", "debug")
	conn := s.dial(t)
	attacker := exec.Command("nice", os.Args[0], "-test.run", "^TestAttacks$", "-attack.by", name, "-attack.at", s.address, "-attack.for", attackFor.String())
	must(t, attacker.Start())
	over := make(chan error, 1)
	go func() { over <- attacker.Wait() }()
	var took []time.Duration
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for attacked := true; attacked; {
		begin := time.Now()
		fetch(t, conn)
		s.probe(t, conn)
		took = append(took, time.Since(begin))
		select {
		case err := <-over:
			must(t, err)
			attacked = false
		case <-pace.C:
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	memory := peak(t, s.Process.Pid)
	t.Logf("%s: %d probes, half within %v, 99%% within %v, 99.9%% within %v, all within %v; %d MB", name, len(took), at(0.5), at(0.99), at(0.999), at(1), memory)
	if memory > mostMemory && !underRace {
		t.Errorf("the server took %d MB, want at most %d", memory, mostMemory)
	}
	if *attackFor > 0 && at(1) > mostDelay {
		t.Errorf("a probe took %v, want at most %v", at(1), mostDelay)
	}
}

func fetch(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	must(t, err)
	must(t, stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNames: []string{"a"}}))
	r, err := stream.Recv()
	must(t, err)
	if len(r.GetResources()) != 1 {
		t.Fatalf("a client has %v, want its endpoints", r)
	}
}

func peak(t *testing.T, pid int) (mb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	_, err = fmt.Sscan(rest, &kb)
	must(t, err)
	return kb / 1000
}

// attackServer attacks over many connections at a time. Each connection starts a new attack when
// its stream has ended.
func attackServer(name, address string) {
	rounds, hold, ctx := 1, time.Second, context.Background()
	if *attackFor > 0 {
		rounds, hold = 1<<30, 5*time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *attackFor)
		defer cancel()
	}
	var all sync.WaitGroup
	for i := range attackers {
		all.Go(func() {
			for n := 0; n < rounds && ctx.Err() == nil; n++ {
				conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					continue
				}
				ctx, cancel := context.WithTimeout(ctx, hold)
				_ = attacks[name](ctx, discoveryv3.NewAggregatedDiscoveryServiceClient(conn), i<<20+n)
				cancel()
				_ = conn.Close()
			}
		})
	}
	all.Wait()
}
