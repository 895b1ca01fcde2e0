package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// serverGroup is the backends of a priority, which answer with the group's name.
type serverGroup struct {
	name    string
	servers []*server
}

func startSecureGroup(t *testing.T, name string, certificate *tls.Certificate) *serverGroup {
	t.Helper()
	g := &serverGroup{name: name}
	for range 2 {
		g.servers = append(g.servers, startServer(t, name, certificate))
	}
	return g
}

func (g *serverGroup) addresses() (all []string) {
	for _, s := range g.servers {
		all = append(all, s.address)
	}
	return all
}

func (g *serverGroup) has(address string) bool { return slices.Contains(g.addresses(), address) }

func (g *serverGroup) fail(err error, servers ...*server) {
	for _, s := range servers {
		if err == nil {
			s.failures.Store(0)
			continue
		}
		s.err = err
		s.failures.Store(1 << 40)
	}
}

func startManager(t *testing.T, script adstest.Script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := adstest.Serve(l, script)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// endpoints returns a file with the addresses of each priority.
func endpoints(priorities ...[]string) string {
	var text strings.Builder
	text.WriteString("cluster_name: e2e\nendpoints:\n")
	for priority, addresses := range priorities {
		fmt.Fprintf(&text, "- priority: %d\n  locality: {region: r%d}\n  load_balancing_weight: 1\n  lb_endpoints:\n", priority, priority)
		for _, address := range addresses {
			host, port, _ := strings.Cut(address, ":")
			fmt.Fprintf(&text, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
		}
	}
	return text.String()
}

func endpointsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
