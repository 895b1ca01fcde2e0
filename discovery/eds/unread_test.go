package eds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// While the bootstrap file is missing or invalid, calls must fail with an error that contains its
// path. When it is valid, the channel must get its endpoints.
func TestBootstrapFileIsMissingAtFirst(t *testing.T) {
	address := serve(t, serveOnce)
	validBootstrap := `{"xds_servers":[{"server_uri":"` + address + `","channel_creds":[{"type":"insecure"}]}]}`
	for name, invalidContent := range map[string]string{"created": "", "created with invalid content first": "{"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "volume", "bootstrap.json")
			t.Setenv(bootstrapFileVar, path)
			c := build(t, "eds:///c")
			expectError(t, c, "open "+path)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile := func(text string) {
				if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				rename(t, path+".new", path)
			}
			if invalidContent != "" {
				writeFile(invalidContent)
				expectError(t, c, path+" ("+bootstrapFileVar+"): not the JSON of a bootstrap")
			}
			writeFile(validBootstrap)
			wait(t, "state", c.states)
		})
	}
}

func expectError(t *testing.T, c *channel, want string) {
	t.Helper()
	if err := wait(t, "error", c.errors); !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %q", err, want)
	}
}

func TestInvalidBootstrapFileIsReadAgain(t *testing.T) {
	address := serve(t, serveOnce)
	validBootstrap := `{"xds_servers":[{"server_uri":"` + address + `","channel_creds":[{"type":"insecure"}]}]}`
	for text, want := range map[string]string{
		"":                                       "not the JSON of a bootstrap",
		validBootstrap[:30]:                      "not the JSON of a bootstrap",
		"{}":                                     "names no server",
		`{"node":[]}`:                            "node: ",
		`{"xds_servers":[{"server_uri":"x:1"}]}`: "has the channel_creds []",
	} {
		bootstrapFile(t, text)
		c := build(t, "eds:///c")
		expectError(t, c, want)
		path := os.Getenv(bootstrapFileVar)
		if err := os.WriteFile(path+".new", []byte(validBootstrap), 0o600); err != nil {
			t.Fatal(err)
		}
		rename(t, path+".new", path)
		wait(t, "state", c.states)
	}
}

// While a certificate file is incomplete or does not match its key, the files must be read again,
// and a failover target must use its other entry.
func TestMismatchedKeyIsReadAgain(t *testing.T) {
	a, other := testcert.New(t), testcert.New(t)
	address := serveTLS(t, a, a.Pool())
	pair, renewed := other.Pair("client", "client"), a.Pair("client", "client")
	t.Setenv(bootstrapConfigVar, tlsBootstrap(address, a.File(), pair))
	certificate, err := os.ReadFile(renewed.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pair.Certificate, certificate[:len(certificate)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	c := build(t, "eds:///c")
	expectError(t, c, "certificate_file and private_key_file: ")
	rename(t, renewed.Certificate, pair.Certificate)
	list := newChannel()
	r, err := given.Builder(failover.Scheme).Build(target(t, "failover:///eds:///c,dns:///10.0.0.9:1"), list, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for n := 0; n != 2; {
		n = len(wait(t, "state", list.states).Endpoints)
		if n == 1 {
			rename(t, renewed.Key, pair.Key)
		}
	}
	wait(t, "state", c.states)
}

func TestCAFileIsMissingAtFirst(t *testing.T) {
	cert := testcert.New(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	address := serve(t, func(s *adstest.Stream) error { return s.Drain() })
	t.Setenv(bootstrapConfigVar, `{"xds_servers":[{"server_uri":"`+address+`","channel_creds":[{"type":"tls","config":{"ca_certificate_file":"`+path+`"}}]}]}`)
	c := build(t, "eds:///c?cds=true")
	expectError(t, c, "ca_certificate_file: open "+path)
	rename(t, cert.File(), path)
	expectError(t, c, address) // the connection fails, because the server does not use TLS
}

func TestCloseBeforeBootstrapIsRead(t *testing.T) {
	t.Setenv(bootstrapFileVar, filepath.Join(t.TempDir(), "bootstrap.json"))
	expectError(t, build(t, "eds:///c"), os.Getenv(bootstrapFileVar)) // TestMain checks that no goroutine is left
}

// If the bootstrap file cannot be read when a channel leaves idle mode, the next call must use the
// last good endpoints.
func TestBootstrapFileIsMissingAfterIdle(t *testing.T) {
	for _, query := range []string{"", "?cds=true"} {
		path := filepath.Join(t.TempDir(), "bootstrap.json")
		t.Setenv(bootstrapFileVar, path)
		if err := os.WriteFile(path+".gone", []byte(`{"xds_servers":[{"server_uri":"`+server+`"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			s := newTestNetwork(t)
			catalogue := adstest.NewCatalogue(adstest.EDS("shop"), adstest.Cluster("shop", "10.1.0.1:1"))
			s.start(server, catalogue.Serve)
			b := s.builder()
			rename(t, path+".gone", path)
			closeChannel := s.openChannel(b, "eds:///shop"+query)
			lastGood := s.updates()
			if !strings.HasPrefix(lastGood, "10.1.0.1:1 ") {
				t.Fatalf("channel saw %s", lastGood)
			}
			closeChannel()
			catalogue.Set(adstest.Cluster("shop", "10.1.0.2:1"))
			rename(t, path, path+".gone")
			s.openChannel(b, "eds:///shop"+query)
			time.Sleep(10 * time.Minute)
			s.expect(lastGood)
			rename(t, path+".gone", path)
			time.Sleep(145 * time.Second)
			if got, want := s.updates(), strings.Replace(lastGood, "10.1.0.1:1", "10.1.0.2:1", 1); !strings.HasSuffix(got, want) {
				t.Errorf("%q: channel saw\n%s\nwant %s in the end", query, got, want)
			}
		})
	}
}
