// Command stockclient is a gRPC-Go client for the interop tests. It uses gRPC-Go's own xds: targets
// and none of this project's code. Its only argument is the target. Each line on stdin has a number
// of calls to make, one after another. When they're done, stockclient prints a line of JSON with
// the number of successful calls by backend and, if a call failed, its error. The bootstrap
// configuration is in the GRPC_XDS_BOOTSTRAP_CONFIG environment variable.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	_ "google.golang.org/grpc/xds"
)

type answer struct {
	Counts map[string]int `json:"counts"`
	Error  string         `json:"error,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stockclient:", err)
		os.Exit(1)
	}
}

func run() error {
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(calls(conn, n)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func calls(conn *grpc.ClientConn, n int) answer {
	a := answer{Counts: make(map[string]int)}
	for range n {
		backend, err := call(conn)
		if err != nil {
			a.Error = err.Error()
			break
		}
		a.Counts[backend]++
	}
	return a
}

func call(conn *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var header metadata.MD
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	return strings.Join(header.Get("backend"), ","), err
}
