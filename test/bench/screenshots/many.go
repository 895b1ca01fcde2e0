package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/debug"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const endpoints = 10_000

type manyEndpoints struct{}

func (manyEndpoints) Check(bool) error { return nil }

func (manyEndpoints) Start(r *discovery.Receiver) (discovery.Started, error) {
	var all []flat.Endpoint
	for i := range endpoints {
		all = append(all, flat.Endpoint{
			Locality: []string{"us-east/a", "us-east/b"}[i%2],
			Address:  fmt.Sprintf("10.%d.%d.%d:443", i%2, i/500, i/2%250+1),
			Weight:   uint32(1 + i%3),
		})
	}
	all = append(all, flat.Endpoint{Priority: 1, Locality: "eu-west/a", Address: "10.8.0.1:443", Weight: 1})
	return discovery.Started{}, r.Update(flat.Answer(all...))
}

func serveMany() (page string, err error) {
	memory := bufconn.Listen(1 << 12)
	server := grpc.NewServer(grpc.ReadBufferSize(0), grpc.WriteBufferSize(0))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(memory) //nolint:errcheck // it serves until the program ends
	shop := given.NewBuilder("shop", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: manyEndpoints{}}}, nil
	})
	cc, err := grpc.NewClient("shop:///payments", grpc.WithResolvers(shop), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ".7.7:443") || strings.HasSuffix(address, ".12.34:443") {
				return nil, errors.New("dial tcp " + address + ": connect: connection refused")
			}
			return memory.DialContext(ctx)
		}))
	if err != nil {
		return "", err
	}
	go func() {
		for {
			_, _ = healthpb.NewHealthClient(cc).Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(listener, debug.Handler()) //nolint:errcheck,gosec // it serves until the program ends
	return "http://" + listener.Addr().String() + "/", nil
}
