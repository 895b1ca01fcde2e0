package file

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	resolving "github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/testleak"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

func TestMain(m *testing.M) { testleak.Main(m) }

type fakeChannel struct {
	resolver.ClientConn // always nil; embedded because grpc-go may add methods to the interface
	states              chan resolver.State
	errors              chan error
	parseErr            error
	updateErr           error
}

type config struct {
	serviceconfig.Config
	json string
}

func newFakeChannel() *fakeChannel {
	return &fakeChannel{states: make(chan resolver.State, 100), errors: make(chan error, 100)}
}

func (c *fakeChannel) UpdateState(s resolver.State) error {
	if resolving.IsAwaiting(s) { // the source has not answered yet
		return nil
	}
	c.states <- s
	return c.updateErr
}
func (c *fakeChannel) ReportError(err error) { c.errors <- err }
func (c *fakeChannel) ParseServiceConfig(json string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{Config: config{json: json}, Err: c.parseErr}
}

const testTimeout = time.Minute

func (c *fakeChannel) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-c.states:
		return describeState(s)
	case <-time.After(testTimeout):
		t.Fatal("no state was sent")
		return ""
	}
}

func (c *fakeChannel) awaitConfig(t *testing.T, texts ...string) {
	t.Helper()
	timeout := time.After(testTimeout)
	for last := ""; ; {
		select {
		case s := <-c.states:
			last = lbtest.StateJSON(s, s.ServiceConfig.Config.(config).json)
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(last, text) }) {
				return
			}
		case <-timeout:
			t.Fatalf("no configuration has %s; the last was %s", texts, last)
		}
	}
}

func (c *fakeChannel) nextError(t *testing.T) string {
	t.Helper()
	select {
	case err := <-c.errors:
		return err.Error()
	case <-time.After(testTimeout):
		t.Fatal("no error was reported")
		return ""
	}
}

func describeState(s resolver.State) string {
	var parts []string
	for _, e := range s.Endpoints {
		parts = append(parts, fmt.Sprintf("%s%q", e.Addresses[0].Addr, hierarchy.Path(e)))
	}
	return strings.Join(parts, " ")
}

func target(t testing.TB, text string) resolver.Target {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return resolver.Target{URL: *u}
}

func watchFile(t *testing.T, path string, opts ...given.Option) *fakeChannel {
	t.Helper()
	channel := newFakeChannel()
	r, err := given.Builder(Scheme, opts...).Build(target(t, "file://"+path), channel, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return channel
}

func onePort(port int) string {
	return fmt.Sprintf("endpoints:\n- lb_endpoints:\n  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: %d}}}\n", port)
}

func stateOf(port int) string { return fmt.Sprintf(`192.0.2.1:%d["child0" "/"]`, port) }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeOld(t *testing.T, path, content string) {
	t.Helper()
	write(t, path, content)
	modTime := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, modTime, modTime); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	rename(t, path+".new", path)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func (c *fakeChannel) expect(t *testing.T, port int) {
	t.Helper()
	if got := c.next(t); got != stateOf(port) {
		t.Fatalf("state = %s, want %s", got, stateOf(port))
	}
}

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "endpoints.yaml")
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const maxRetryTime = 2 * time.Second
