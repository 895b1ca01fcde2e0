package serve

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// If the TLS files are invalid or only partly renewed, the server continues to use the last valid
// files.
func TestInvalidTLSFiles(t *testing.T) {
	a := testcert.New(t)
	pair := a.Pair("server", "127.0.0.1")
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	s, l := start(t, Options{Paths: []string{path}, TLS: TLS{Certificate: pair.Certificate, Key: pair.Key, ClientCA: a.File()}})
	client := a.Pair("client", "client").Load(t)
	connect := func(name string) {
		t.Helper()
		stream := openStream(t, s, credentials.NewTLS(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{client}, ServerName: name}))
		send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: endpointType, ResourceNames: []string{"a"}})
		receive(t, stream)
	}
	roots, err := os.ReadFile(a.File())
	must(t, err)
	for _, invalid := range []struct{ file, text string }{{pair.Key, ""}, {pair.Certificate, "half of a certifi"}, {a.File(), ""}} {
		must(t, os.WriteFile(invalid.file, []byte(invalid.text), 0o600))
		for range 3 {
			connect("127.0.0.1")
		}
		l.wait(t, "TLS files rejected, the last good ones are still used")
		l.mu.Lock()
		loggedTwice := slices.ContainsFunc(l.lines, func(line map[string]any) bool { return strings.HasPrefix(line["msg"].(string), "TLS files") })
		l.mu.Unlock()
		if loggedTwice {
			t.Errorf("%s is complained of twice", invalid.file)
		}
		if _, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: a.Pool(), NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12}); err == nil {
			t.Error("a client without a certificate is let in")
		}
		must(t, os.WriteFile(a.File(), roots, 0o600))
		a.Pair("server", "127.0.0.1", "renewed")
		connect("renewed")
	}
}
