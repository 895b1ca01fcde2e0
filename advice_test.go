package understudy_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy"
)

// advised matches the targets in an error: the one to write, and examples.
var advised = regexp.MustCompile(`write ([^ ]+)$|(?:want|write|such as|the form|or|,) ((?:[a-z]+:///?|us-east\.)[^ ;…]*[^ ;,…])`)

func advice(err error) []string {
	var targets []string
	unquoted := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(err.Error(), "")
	for _, m := range advised.FindAllStringSubmatch(unquoted, -1) {
		targets = append(targets, m[1]+m[2])
	}
	return targets
}

// Each error about a target advises one that NewClient accepts, without characters that the user
// does not need to know about.
func TestAdviceIsAccepted(t *testing.T) {
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", "")
	const example = "us-east.example.com:443,eu-west.example.com:443"
	for target, want := range map[string]string{
		"us.example.com":                        "us.example.com:443",
		"us.example.com?failoverTimeout=1s":     "us.example.com:443?failoverTimeout=1s",
		"us.example.com,eu.example.com":         "us.example.com:443,eu.example.com:443",
		"us.example.com:80,eu.example.com":      "us.example.com:80,eu.example.com:443",
		"localhost:":                            "localhost:443",
		"10.0.0.1":                              "10.0.0.1:443",
		"::1":                                   "[::1]:443",
		"[::1]":                                 "[::1]:443",
		"fe80::1%lo":                            "[fe80::1%lo]:443",
		"[::1%lo]:1,b":                          "[::1%lo]:1,b:443",
		"a:1,b:2,":                              "a:1,b:2",
		",a:1":                                  "a:1",
		"a:1,,b:2":                              "a:1,b:2",
		"a:1, b:2":                              "a:1,b:2",
		" a:1 , b ":                             "a:1,b:443",
		"a:1,b:2,?ramp=5s":                      "a:1,b:2?ramp=5s",
		"localhost:99999":                       example,
		"a:1,b:65536":                           example,
		"a:-1":                                  example,
		"localhost:http":                        "failover:///localhost:http",
		"a:1,b:http":                            "failover:///a:1,b:http",
		"a:1/b":                                 example,
		"a:b:1":                                 example,
		"a:1 b:2":                               example,
		"a%zz:1":                                example,
		":443":                                  "failover:///:443",
		"":                                      example,
		",":                                     example,
		"?":                                     example,
		"user@a:1":                              example,
		"dns:///a:443":                          "failover:///dns:///a:443",
		"dns:///a:443,dns:///b:443":             "failover:///dns:///a:443,dns:///b:443",
		"dns:///a:443,b:443":                    "failover:///dns:///a:443,b:443",
		"dns:///a:443, dns:///b:443,":           "failover:///dns:///a:443,dns:///b:443",
		"dns:a:1,b:2":                           "failover:///dns:a:1,b:2",
		"dns://192.0.2.53/a:1,b:2":              "failover:///dns://192.0.2.53/a:1,b:2",
		"dns:///a:443?failoverTimeout=1s":       "failover:///dns:///a:443?failoverTimeout=1s",
		"unix:/a":                               "failover:///unix:/a",
		"unix:/a,unix:/b":                       "failover:///unix:/a,unix:/b",
		"unix:/a?failoverTimeout=1s":            "failover:///unix:/a?failoverTimeout=1s",
		"unix:/a?x=1":                           example,
		"unix-abstract:x":                       "failover:///unix-abstract:x",
		"passthrough:///a:1":                    "failover:///passthrough:///a:1",
		"a:1,unix:/b":                           "failover:///a:1,unix:/b",
		"a:1,srv:///b":                          "failover:///a:1,srv:///b",
		"a,srv:///b":                            "failover:///a:443,srv:///b",
		"srv:///a,srv:///b":                     "failover:///srv:///a,srv:///b",
		"srv:///a.b,c:443":                      "failover:///srv:///a.b,c:443",
		"/etc/endpoints.yaml":                   "file:///etc/endpoints.yaml",
		"dns:///a,xds:///b":                     example,
		"http://a:1":                            example,
		"consul:///a":                           example,
		"failover:a:1":                          "failover:///a:1",
		"failover://a:1,b:2":                    "failover:///" + example,
		"failover:///a:1,":                      "us-east.example.com:443",
		"failover:///localhost:99999":           "us-east.example.com:443",
		"failover:///dns:///a:1,dns:///a:-1":    "us-east.example.com:443",
		"xds:///a":                              "eds://xds.example.com:443/cluster",
		"xds:///a,xds:///b":                     "eds://xds.example.com:443/cluster",
		"eds:///a":                              "eds://xds.example.com:443/cluster",
		"eds:a:1/b":                             "eds:///a:1/b",
		"file:a":                                "file:///a",
		"srv:a":                                 "srv:///a",
		"[::1%lo]:1,b:1?failoverTimeout=0s":     "",
		"a:1,b:2?failoverTimout=1s":             "",
		strings.Repeat("long.", 60) + "example": example,
	} {
		cc, err := newClient(target, understudy.Options{})
		if err == nil {
			cc.Close()
			t.Errorf("%s: accepted as %s, want an error", target, cc.Target())
			continue
		}
		if strings.Contains(err.Error(), "%25") {
			t.Errorf("%s: %v\nwant no %%25, which the user did not write", target, err)
		}
		found := advice(err)
		if want != "" && !slices.Contains(found, want) {
			t.Errorf("%s: %v\nadvises %q, want %s", target, err, found, want)
		}
		for _, other := range found {
			if strings.HasPrefix(other, "eds:///") {
				continue // TestAdviceWithBootstrap
			}
			if cc, err := newClient(other, understudy.Options{}); err != nil {
				t.Errorf("%s: the advice is %s: %v", target, other, err)
			} else {
				cc.Close()
			}
		}
	}
}

// gRPC prints a channel's target without escapes and without the parameters of the channel. What
// it prints must be a target, too.
func TestCanonicalTargetIsAccepted(t *testing.T) {
	for _, target := range []string{
		"a:1,b:2", "a:1?failoverTimeout=1s", "[::1%lo]:1,b:1", "[::1%25lo]:1", "[fe80::1%eb0]:1", "[fe80::1%25]:1", "failover:/a:1",
		"failover:///[::1%lo]:1", "failover:///[::1%25lo]:1", "failover:///[::1%2525lo]:1", "failover:///dns:///[::1%25lo]:1,b:1",
		"failover:///a:1%3Frefresh=5s,b:2", "failover:///a:1%3Frefresh=5s,b:2?failoverTimeout=1s", "failover:///a:1,b:2%3Frefresh=5s",
		"failover:///a:1%3Fauthority=b%25c,srv:///b%3Fverify=record", "failover:///a:1,file:///etc/x.yaml%3Fcluster=shop",
		"failover:///failover:%2F%2F%2Fb:1%2Cc:1,d:1", "failover:///unix:/a%2523b,c:1", "failover:///unix:/a%2525b,c:1",
		"file:///etc/a%20b.yaml", "file:///etc/a%25b%23c.yaml?cluster=d", "file:///etc/a%25zz", "eds://127.0.0.1:1/a%25%23b", "srv:///a%2eb",
	} {
		seen := map[string]bool{}
		for next := target; !seen[next]; { // until it does not change any more
			seen[next] = true
			cc, err := newClient(next, understudy.Options{})
			if err != nil {
				t.Errorf("%s: %s: %v", target, next, err)
				break
			}
			next = cc.CanonicalTarget()
			cc.Close()
		}
	}
}

func TestAdviceWithBootstrap(t *testing.T) {
	bootstrap := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(bootstrap, []byte(`{"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", bootstrap)
	_, err := newClient("eds:a:1/b", understudy.Options{})
	if err == nil {
		t.Fatal("eds:a:1/b: accepted, want an error")
	}
	for _, other := range advice(err) {
		cc, err := newClient(other, understudy.Options{})
		if err != nil {
			t.Errorf("the advice is %s: %v", other, err)
			continue
		}
		cc.Close()
	}
}

// Who follows the advice reaches the server. The port of each target is that of a server on
// loopback.
func TestAdviceReachesServer(t *testing.T) {
	tcp := serveHealth(t, "tcp", "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(tcp)
	dir, err := os.MkdirTemp("", "") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := serveHealth(t, "unix", filepath.Join(dir, "s"))
	for _, target := range []string{
		"127.0.0.1:PORT,", " 127.0.0.1:PORT, ", "127.0.0.1:PORT,,localhost:PORT", "dns:///127.0.0.1:PORT,dns:///localhost:PORT",
		"passthrough:///127.0.0.1:PORT", "127.0.0.1:PORT,unix:SOCKET", "unix:SOCKET", "unix:SOCKET,unix:SOCKET", "unix:SOCKET?failoverTimeout=5s",
	} {
		_, err := newClient(strings.NewReplacer("PORT", port, "SOCKET", socket).Replace(target), understudy.Options{})
		if err == nil {
			t.Errorf("%s: accepted, want advice", target)
			continue
		}
		for _, other := range advice(err) {
			cc, err := newClient(other, understudy.Options{})
			if err != nil {
				t.Errorf("%s: the advice is %s: %v", target, other, err)
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
				t.Errorf("%s: the advice is %s: %v", target, other, err)
			}
			cancel()
			cc.Close()
		}
	}
}

// An address with a zone needs no escape, and reaches the server in every spelling.
func TestZoneReachesServer(t *testing.T) {
	loopback := ""
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = i.Name
		}
	}
	port, hasIPv6 := "1", false
	if listener, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = listener.Close()
		_, port, _ = net.SplitHostPort(serveHealth(t, "tcp", "[::1]:0"))
		hasIPv6 = true
	}
	for _, target := range []string{"[::1%ZONE]:PORT,127.0.0.1:1", "[::1%25ZONE]:PORT", "failover:///[::1%ZONE]:PORT", "failover:///dns:///[::1%25ZONE]:PORT"} {
		cc, err := newClient(strings.NewReplacer("PORT", port, "ZONE", loopback).Replace(target), understudy.Options{})
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(hasIPv6)); err != nil && hasIPv6 {
			t.Errorf("%s: %v", target, err)
		}
		cancel()
		cc.Close()
	}
}

func serveHealth(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return listener.Addr().String()
}
