package e2e

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// sourceErrors has a function for each fault of a source. The function causes the fault and returns
// the errors that gRPC receives.
var sourceErrors = map[string]func(*testing.T) []error{
	"eds: the server is down": func(t *testing.T) []error {
		return wantError(t, "refused", given.Builder(eds.Scheme), "eds://"+closedAddress(t)+"/c", nil)
	},
	"eds: the server ends the stream": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(eds.Scheme), "eds://"+startManager(t, func(*adstest.Stream) error { return errFinal })+"/c", nil)
	},
	"eds: the resource is rejected": func(t *testing.T) []error {
		return wantError(t, "priority 1 is used", given.Builder(eds.Scheme), "eds://"+startManager(t, func(s *adstest.Stream) error {
			gap := adstest.Cluster("c", "10.0.0.1:1")
			gap.Endpoints[0].Priority = 1
			return errors.Join(s.Respond("1", "n", gap), s.Drain())
		})+"/c", nil)
	},
	"eds: the channel refuses the service config": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(eds.Scheme), "eds://"+startManager(t, func(s *adstest.Stream) error {
			return errors.Join(s.Respond("1", "n", adstest.Cluster("c", "10.0.0.1:1")), s.Drain())
		})+"/c", errFinal)
	},
	"eds: the target is wrong": func(t *testing.T) []error {
		return wantError(t, "a cluster has no name", given.Builder(eds.Scheme), "eds://nowhere", nil)
	},
	"file: there is none": func(t *testing.T) []error {
		return wantError(t, "no such file", given.Builder(file.Scheme), "file://"+filepath.Join(t.TempDir(), "none.yaml"), nil)
	},
	"file: it is broken": func(t *testing.T) []error {
		return wantError(t, "want a list", given.Builder(file.Scheme), "file://"+endpointsFile(t, "endpoints: 1"), nil)
	},
	"file: the channel refuses the service config": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(file.Scheme), "file://"+endpointsFile(t, "{cluster_name: c}"), errFinal)
	},
	"file: the channel refuses the user's service config": func(t *testing.T) []error {
		b := given.Builder(file.Scheme, given.Set("ServiceConfig", `{"methodConfig":[]}`))
		return wantError(t, "go away", b, "file://"+endpointsFile(t, "{cluster_name: c}"), errFinal)
	},
	"failover: an entry's resolver fails": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(failingResolver{}))), "failover:///theirs:a,theirs:b", nil)
	},
	"failover: an entry's resolver cannot be built": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(failingResolver{errFinal}))), "failover:///theirs:a", nil)
	},
	"failover: the channel refuses the service config": func(t *testing.T) []error {
		return wantError(t, "go away", given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(failingResolver{}))), "failover:///theirs:a", errFinal)
	},
}

func wantError(t *testing.T, want string, b resolver.Builder, target string, refusal error) []error {
	t.Helper()
	err := firstError(t, b, target, refusal)
	if !strings.Contains(err.Error(), want) {
		t.Errorf("gRPC received %q, want %q", err, want)
	}
	return []error{err}
}

func firstError(t *testing.T, b resolver.Builder, target string, refusal error) error {
	t.Helper()
	cc := &errorChannel{errors: make(chan error, 1), refusal: refusal}
	r, err := b.Build(targetOf(t, target), cc, resolver.BuildOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	select {
	case err := <-cc.errors:
		return err
	case <-time.After(eventTimeout):
		t.Fatalf("no error within %v", eventTimeout)
		return nil
	}
}

type errorChannel struct {
	resolver.ClientConn
	errors  chan error
	refusal error
}

func (c *errorChannel) UpdateState(resolver.State) error { return errFinal }

func (c *errorChannel) ReportError(err error) {
	select {
	case c.errors <- err:
	default:
	}
}

func (c *errorChannel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{Err: c.refusal}
}

type failingResolver struct{ buildErr error }

func (failingResolver) Scheme() string { return "theirs" }

func (b failingResolver) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if b.buildErr != nil {
		return nil, b.buildErr
	}
	cc.ReportError(errFinal)
	return b, nil
}

func (failingResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (failingResolver) Close()                                {}

func targetOf(t *testing.T, text string) resolver.Target {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return resolver.Target{URL: *u}
}

func listenOn(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closedAddress(t *testing.T) string {
	t.Helper()
	l := listenOn(t, "127.0.0.1:0")
	defer l.Close()
	return l.Addr().String()
}

func startManager(t *testing.T, script adstest.Script) string {
	t.Helper()
	return startManagerOn(t, "127.0.0.1:0", script)
}

func startManagerOn(t *testing.T, address string, script adstest.Script) string {
	t.Helper()
	l := listenOn(t, address)
	s := adstest.Serve(l, script)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}
