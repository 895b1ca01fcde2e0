package kubernetes_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
)

// These tests replay failures that users of other resolvers have reported. All pods of a test have
// the same IP address and different ports, so each pod needs its own slice.

type replay struct {
	*kubetest.Server
	t    *testing.T
	pods map[string]string
	cc   *grpc.ClientConn
}

func newReplay(t *testing.T, pods ...string) *replay {
	r := &replay{Server: kubetest.Start(t), t: t, pods: make(map[string]string)}
	for _, name := range pods {
		r.pods[name] = backend(t)
	}
	return r
}

func (r *replay) set(slice, pod, fields string) {
	host, text, _ := net.SplitHostPort(r.pods[pod])
	var port int
	_, _ = fmt.Sscan(text, &port)
	r.Set("web", slice, port, fmt.Sprintf(`{"addresses":[%q],"targetRef":{"uid":%q}%s}`, host, pod, fields))
}

func (r *replay) open() {
	cc, err := understudy.NewClient("kubernetes:///web.shop",
		understudy.Options{Sources: []discovery.SourceOption{kubernetes.WithTransport(r.URL, &http.Transport{})}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.cc = cc
	r.t.Cleanup(func() { _ = cc.Close() })
}

func (r *replay) call() string {
	r.t.Helper()
	var p peer.Peer
	if err := call(r.t, healthpb.NewHealthClient(r.cc), grpc.WaitForReady(true), grpc.Peer(&p)); err != nil {
		r.t.Fatal(err)
	}
	for name, address := range r.pods {
		if address == p.Addr.String() {
			return name
		}
	}
	r.t.Fatalf("%v answers, which is none of %v", p.Addr, r.pods)
	return ""
}

func (r *replay) wantCalls(when string, want ...string) {
	r.t.Helper()
	var last string
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		seen := make(map[string]bool)
		for range 100 {
			seen[r.call()] = true
		}
		var names []string
		for name := range seen {
			names = append(names, name)
		}
		slices.Sort(names)
		if last = strings.Join(names, " "); last == strings.Join(want, " ") {
			return
		}
	}
	r.t.Fatalf("%s calls go to %s, want %v", when, last, want)
}

// kuberesolver 66: Only the slice that had changed last was used. Endpoints of deleted slices were
// added, and endpoints without the condition ready were ignored.
func TestReplayOfKuberesolver66(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "a", "b", "c", "d")
	r.set("web-1", "a", "")
	r.set("web-2", "b", "")
	r.set("web-3", "c", `,"conditions":{"ready":null}`)
	r.open()
	r.wantCalls("at first", "a", "b", "c")
	r.set("web-2", "d", "")
	r.wantCalls("after one slice has changed", "a", "c", "d")
	r.set("web-1", "a", `,"zone":"z"`)
	r.wantCalls("after another has changed", "a", "c", "d")
	r.set("web-3", "c", `,"conditions":{"ready":false}`)
	r.Delete("web-3")
	r.wantCalls("after one was deleted", "a", "d")
}

// go-zero PR 5659: Each event contains one slice and replaced all known endpoints, so most
// endpoints were lost. The fix was not merged.
func TestReplayOfGoZero5659(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "a", "b", "c", "d")
	for i, pod := range []string{"a", "b", "c"} {
		r.set(fmt.Sprint("web-", i), pod, "")
	}
	r.open()
	r.wantCalls("at first", "a", "b", "c")
	for range 20 {
		for i, pod := range []string{"a", "b", "c"} {
			r.set(fmt.Sprint("web-", i), pod, "")
		}
	}
	r.set("web-3", "d", "")
	r.wantCalls("after many events of one slice each", "a", "b", "c", "d")
	r.set("web-1", "c", "")
	r.wantCalls("after a slice has lost what another one has", "a", "c", "d")
}

// OpenTelemetry collector contrib 50436: Data was sent to pods that were terminating.
func TestReplayOfOtelContrib50436(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "a", "b")
	r.set("web-1", "a", "")
	r.set("web-2", "b", "")
	r.open()
	r.wantCalls("at first", "a", "b")
	r.set("web-1", "a", `,"conditions":{"ready":false,"serving":true,"terminating":true}`)
	r.wantCalls("after a began to terminate", "b")
	for i := range 1000 {
		if pod := r.call(); pod == "a" {
			t.Fatalf("call %d went to the pod that terminates", i)
		}
	}
	r.set("web-2", "b", `,"conditions":{"ready":false}`)
	r.wantCalls("while none is ready", "a")
}
