package eds

import (
	"flag"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	goleak.VerifyTestMain(m)
}

const testTimeout = time.Minute

type channel struct {
	resolver.ClientConn
	states chan resolver.State
	errors chan error
}

func newChannel() *channel {
	return &channel{states: make(chan resolver.State, 100), errors: make(chan error, 100)}
}

func (c *channel) UpdateState(s resolver.State) error {
	if join.IsAwaiting(s) { // the source has not answered yet
		return nil
	}
	push(c.states, s)
	return nil
}
func (c *channel) ReportError(err error) { push(c.errors, err) }

// push sends v to the Go channel to. If the buffer is full, push drops the oldest value, so that a
// source never blocks.
func push[T any](to chan T, v T) {
	for {
		select {
		case to <- v:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}

type rawConfig struct {
	serviceconfig.Config
	text string
}

func (c *channel) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{Config: rawConfig{text: text}}
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("no %s within %v", what, testTimeout)
		panic("unreachable")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serve(t *testing.T, script adstest.Script, opts ...grpc.ServerOption) string {
	t.Helper()
	l := listen(t)
	s := adstest.Serve(l, script, opts...)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func serveOnce(s *adstest.Stream) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	if err := s.Respond("1", "n", adstest.Cluster("c", "10.0.0.1:1")); err != nil {
		return err
	}
	return s.Drain()
}

func build(t *testing.T, text string, opts ...given.Option) *channel {
	t.Helper()
	c := newChannel()
	r, err := given.Builder(Scheme, opts...).Build(target(t, text), c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return c
}

func buildError(t *testing.T, text string, opts ...given.Option) string {
	t.Helper()
	r, err := given.Builder(Scheme, opts...).Build(target(t, text), newChannel(), resolver.BuildOptions{})
	if err == nil {
		r.Close()
		t.Fatalf("%s: Build succeeded, want an error", text)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
	return err.Error()
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
