package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

// story has a source that the test controls, and a network in memory.
type story struct {
	scripttest.Source
	unhealthy *bufconn.Listener
	health    *health.Server
	listeners map[string]*bufconn.Listener
	log       testlog.Log
}

// take returns the lines since its last call.
func (s *story) take() string { return channelNumber.ReplaceAllString(s.log.Take(), "") }

var channelNumber = regexp.MustCompile(` channel="Channel #\d+"`)

func (s *story) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	last := host[strings.LastIndex(host, ".")+1:]
	if listener := s.listeners[last]; listener != nil {
		return listener.DialContext(ctx)
	}
	switch last {
	case "2":
		<-ctx.Done()
		return nil, ctx.Err()
	case "3":
		return s.unhealthy.DialContext(ctx)
	}
	addr, _ := net.ResolveTCPAddr("tcp", address)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func newStory(t *testing.T, options ...given.Option) (*story, *grpc.ClientConn) {
	t.Helper()
	s := &story{health: health.NewServer()}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	s.unhealthy = scripttest.Serve(t, s.health)
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	options = append(options, given.Set("ServiceConfig", `{"healthCheckConfig": {"serviceName": ""}}`), given.Set("FailoverTimeout", 8*time.Second),
		given.Set("Logger", slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))
	return s, scripttest.Open(t, "shop", []discovery.Mechanism{{Source: s}}, options, grpc.WithContextDialer(s.dial))
}

// endpointAt returns an endpoint. The last number of its address determines what dial does: 1
// refuses the connection, 2 hangs, and 3 connects to a backend that is NOT_SERVING.
func endpointAt(priority uint32, locality, address string) flat.Endpoint {
	return flat.Endpoint{Priority: priority, Locality: locality, Address: address + ":443"}
}

var refusedEndpoints = []flat.Endpoint{endpointAt(0, "us-east/a", "10.0.0.1"), endpointAt(0, "us-east/a", "10.0.1.1"), endpointAt(0, "us-east/b", "10.0.2.1"), endpointAt(1, "eu-west", "10.1.0.1")}

// anyAddress matches the addresses of endpoints. The test replaces them, because any of the
// endpoints may be the last one that failed.
var anyAddress = regexp.MustCompile(`10\.0\.[0-2]\.1:`)

// The errors of calls and the log name each priority and its problem.
func TestErrorsAndLogNameProblems(t *testing.T) {
	for name, test := range map[string]struct {
		send  func(*story)
		after time.Duration
		err   string
		log   string
	}{
		"everything refused": {
			func(s *story) { s.Receiver.Update(flat.Answer(refusedEndpoints...)) }, 0,
			"no priority can take calls: p0 us-east/a, us-east/b: connection refused by 10.0.x.1:443 (3 endpoints); p1 eu-west: connection refused by 10.1.0.1:443 (1 endpoint)",
			`level=WARN msg=failover target=story:///shop from="p0 us-east/a, us-east/b" to="p1 eu-west" state=CONNECTING after=0s reason="p0 us-east/a, us-east/b: connection refused by 10.0.x.1:443 (3 endpoints)"
level=WARN msg="no priority can take calls" target=story:///shop reason="p0 us-east/a, us-east/b: connection refused by 10.0.x.1:443 (3 endpoints); p1 eu-west: connection refused by 10.1.0.1:443 (1 endpoint)"
`,
		},
		"hung": {
			func(s *story) {
				s.Receiver.Update(flat.Answer(endpointAt(0, "us-east/a", "10.0.0.2"), endpointAt(1, "eu-west", "10.1.0.2")))
			}, 15 * time.Second,
			"no priority can take calls: p0 us-east/a: did not connect within 8 s (1 endpoint, failing for 8 s); p1 eu-west: did not connect within 8 s (1 endpoint)",
			`level=WARN msg=failover target=story:///shop from="p0 us-east/a" to="p1 eu-west" state=CONNECTING after=8s reason="p0 us-east/a: did not connect within 8 s (1 endpoint)"
level=WARN msg="no priority can take calls" target=story:///shop reason="p0 us-east/a: did not connect within 8 s (1 endpoint, failing for 8 s); p1 eu-west: did not connect within 8 s (1 endpoint)"
`,
		},
		"NOT_SERVING": {
			func(s *story) {
				s.Receiver.Update(flat.Answer(endpointAt(0, "us-east/a", "10.0.0.3"), endpointAt(1, "eu-west", "10.1.0.3")))
			}, 0,
			"no priority can take calls: p0 us-east/a: the health check says NOT_SERVING (1 endpoint); p1 eu-west: the health check says NOT_SERVING (1 endpoint)",
			`level=WARN msg=failover target=story:///shop from="p0 us-east/a" to="p1 eu-west" state=CONNECTING after=0s reason="p0 us-east/a: the health check says NOT_SERVING (1 endpoint)"
level=WARN msg="no priority can take calls" target=story:///shop reason="p0 us-east/a: the health check says NOT_SERVING (1 endpoint); p1 eu-west: the health check says NOT_SERVING (1 endpoint)"
`,
		},
		"empty": {
			func(s *story) { s.Receiver.Update(flat.Empty()) }, 0,
			`priority policy has empty priority list: story:///shop: there are no endpoints`,
			``,
		},
		"control plane gone": {
			func(s *story) { s.Receiver.Fail(errors.New("xds.example.com: connection refused")) }, 0,
			"story: xds.example.com: connection refused",
			`level=WARN msg="source fails" target=story:///shop source=story reason="xds.example.com: connection refused"
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cc := newStory(t)
				test.send(s)
				time.Sleep(test.after)
				synctest.Wait()
				waiting := make(chan error, 1)
				go func() {
					waiting <- cc.Invoke(t.Context(), "/x/Y", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}, grpc.WaitForReady(true))
				}()
				err := cc.Invoke(t.Context(), "/x/Y", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
				if got := anyAddress.ReplaceAllString(status.Convert(err).Message(), "10.0.x.1:"); status.Code(err) != codes.Unavailable || got != test.err {
					t.Errorf("calls fail with %v, want UNAVAILABLE and\n%s", err, test.err)
				}
				synctest.Wait()
				// The policy may log the switch to p1 before or after it learns that p1 has failed,
				// so both states are correct.
				log := strings.ReplaceAll(s.take(), "state=TRANSIENT_FAILURE", "state=CONNECTING")
				if got := anyAddress.ReplaceAllString(log, "10.0.x.1:"); got != test.log {
					t.Errorf("logged\n%swant\n%s", got, test.log)
				}
				s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
				s.Receiver.Update(flat.Answer(endpointAt(0, "us-east/a", "10.0.0.3")))
				if err := <-waiting; status.Code(err) != codes.Unimplemented {
					t.Errorf("a wait-for-ready call ended with %v, want the server's UNIMPLEMENTED", err)
				}
			})
		})
	}
}

// Errors stay readable with very long names, control characters and many priorities.
func TestHostileNamesAreShortenedAndEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := newStory(t)
		var endpoints []flat.Endpoint
		for i := range 20 {
			locality := fmt.Sprintf("\x1b[31m\u202e<script>%d %s", i, strings.Repeat("x", 10_000))
			endpoints = append(endpoints, endpointAt(uint32(i), locality, fmt.Sprintf("10.0.%d.1", i)))
		}
		s.Receiver.Update(flat.Answer(endpoints...))
		synctest.Wait()
		err := cc.Invoke(t.Context(), "/x/Y", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
		for _, text := range []string{status.Convert(err).Message(), s.take()} {
			if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "p7 ") {
				t.Errorf("not escaped or incomplete: %s", text)
			}
		}
		if n := len(err.Error()); n > 2000 || !strings.Contains(err.Error(), "and 12 more") {
			t.Errorf("the error has %d bytes: %v", n, err)
		}
	})
}
