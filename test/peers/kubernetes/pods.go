package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
)

var podNames = []string{"a", "b", "c", "d"}

// pods are servers with different addresses but the same port, like the pods of a Deployment.
type pods struct {
	port    int
	servers []*grpc.Server
}

func startPods() (*pods, error) {
	var errs []error
	for range 20 {
		p, err := tryPods()
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func tryPods() (*pods, error) {
	p := &pods{}
	for i := range podNames {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", addressOf(i), p.port))
		if err != nil {
			p.stop()
			return nil, err
		}
		p.port = l.Addr().(*net.TCPAddr).Port
		server := grpc.NewServer()
		healthgrpc.RegisterHealthServer(server, health.NewServer())
		p.servers = append(p.servers, server)
		go server.Serve(l) //nolint:errcheck // the server ends when stop is called
	}
	return p, nil
}

func (p *pods) stop() {
	for _, server := range p.servers {
		server.Stop()
	}
}

func addressOf(pod int) string { return fmt.Sprintf("127.0.0.%d", pod+1) }

func endpoint(name, conditions string) string {
	return fmt.Sprintf(`{"addresses":[%q],"targetRef":{"uid":%q},"conditions":{%s}}`, addressOf(slices.Index(podNames, name)), name, conditions)
}

// callsPerStep is enough to see which pods a channel uses.
const callsPerStep = 200

// answeringPods returns the names of the pods that answered, followed by the number of failed calls
// if there were any.
func answeringPods(cc grpc.ClientConnInterface) string {
	client, answered, failed := healthgrpc.NewHealthClient(cc), make([]bool, len(podNames)), 0
	for range callsPerStep {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var p peer.Peer
		_, err := client.Check(ctx, &healthgrpc.HealthCheckRequest{}, grpc.Peer(&p))
		cancel()
		if err != nil {
			failed++
			continue
		}
		host, _, _ := net.SplitHostPort(p.Addr.String())
		for i := range podNames {
			answered[i] = answered[i] || addressOf(i) == host
		}
	}
	var names []string
	for i, name := range podNames {
		if answered[i] {
			names = append(names, name)
		}
	}
	if failed > 0 {
		names = append(names, fmt.Sprintf("(%d of %d calls failed)", failed, callsPerStep))
	}
	return strings.Join(names, " ")
}

func traffic(duration time.Duration, channels ...grpc.ClientConnInterface) {
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); <-ticks.C {
		for _, cc := range channels {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			healthgrpc.NewHealthClient(cc).Check(ctx, &healthgrpc.HealthCheckRequest{}) //nolint:errcheck // the measured calls come later
			cancel()
		}
	}
}
