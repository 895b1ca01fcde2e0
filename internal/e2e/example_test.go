package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

// example is what the README's client is configured with.
type example struct {
	serviceConfig string
	keepalive     keepalive.ClientParameters
	deadline      time.Duration
}

// readExample reads the configuration from the client's source.
func readExample(t *testing.T) example {
	t.Helper()
	source, err := os.ReadFile("../../examples/client/main.go")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		match := regexp.MustCompile(pattern).FindSubmatch(source)
		if match == nil {
			t.Fatalf("the client has no %s", pattern)
		}
		return string(match[1])
	}
	seconds := func(pattern string) time.Duration {
		n, err := strconv.Atoi(find(pattern))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	return example{
		serviceConfig: find("(?s)const serviceConfig = `(.*?)`"),
		keepalive: keepalive.ClientParameters{
			Time:                seconds(`\bTime: +(\d+) \* time\.Second`),
			Timeout:             seconds(`\bTimeout: +(\d+) \* time\.Second`),
			PermitWithoutStream: true,
		},
		deadline: seconds(`WithTimeout\(context\.Background\(\), (\d+)\*time\.Second\)`),
	}
}

// dial opens the README's channel over endpoints in a file, a priority each.
func (e example) dial(t *testing.T, creds credentials.TransportCredentials, addresses ...string) *grpc.ClientConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	writeEndpoints(t, path, addresses...)
	return newClient(t, "file://"+path+"?authority=shop.example.com", grpc.WithTransportCredentials(creds),
		understudy.With(discovery.WithServiceConfig(e.serviceConfig)), grpc.WithKeepaliveParams(e.keepalive))
}
