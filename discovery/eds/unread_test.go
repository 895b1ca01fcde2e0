package eds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// A bootstrap that cannot be read for a while fails calls with its name meanwhile, and is used
// once it can be, also where it has a mistake in between.
func TestABootstrapThatCannotBeReadForAWhile(t *testing.T) {
	address := serve(t, constant)
	good := `{"xds_servers":[{"server_uri":"` + address + `","channel_creds":[{"type":"insecure"}]}]}`
	for name, between := range map[string]string{"it comes": "", "it comes with a mistake first": "{"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "volume", "bootstrap.json")
			t.Setenv(bootstrapFileVar, path)
			c := build(t, "eds:///c")
			expectError(t, c, "open "+path)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			put := func(text string) {
				if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				rename(t, path+".new", path)
			}
			if between != "" {
				put(between)
				expectError(t, c, path+" ("+bootstrapFileVar+"): not the JSON of a bootstrap")
			}
			put(good)
			wait(t, "state", c.states)
		})
	}
}

func expectError(t *testing.T, c *channel, want string) {
	t.Helper()
	if err := wait(t, "error", c.errors); !strings.Contains(err.Error(), want) {
		t.Errorf("the channel is told %v, want %q", err, want)
	}
}

// So it is with a file that the bootstrap names, and where clusters come by CDS.
func TestAFileOfTheBootstrapThatCannotBeReadForAWhile(t *testing.T) {
	cert := testcert.New(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	address := serve(t, func(s *adstest.Stream) error { return s.Drain() })
	t.Setenv(bootstrapConfigVar, `{"xds_servers":[{"server_uri":"`+address+`","channel_creds":[{"type":"tls","config":{"ca_certificate_file":"`+path+`"}}]}]}`)
	c := build(t, "eds:///c?cds=true")
	expectError(t, c, "ca_certificate_file: open "+path)
	rename(t, cert.File(), path)
	expectError(t, c, address) // the connection, which the server does not secure
}

// A channel that is closed meanwhile reads no more.
func TestAChannelThatIsClosedBeforeItsBootstrapIsRead(t *testing.T) {
	t.Setenv(bootstrapFileVar, filepath.Join(t.TempDir(), "bootstrap.json"))
	expectError(t, build(t, "eds:///c"), os.Getenv(bootstrapFileVar)) // TestMain looks for what is left
}

// A channel that was idle meanwhile goes on with what was known, and then with what is said.
func TestABootstrapThatCannotBeReadAfterIdleness(t *testing.T) {
	for _, query := range []string{"", "?cds=true"} {
		path := filepath.Join(t.TempDir(), "bootstrap.json")
		t.Setenv(bootstrapFileVar, path)
		if err := os.WriteFile(path+".gone", []byte(`{"xds_servers":[{"server_uri":"`+server+`"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			defer s.end()
			catalogue := adstest.NewCatalogue(adstest.EDS("shop"), adstest.Cluster("shop", "10.1.0.1:1"))
			s.start(server, catalogue.Serve)
			b := s.builder()
			rename(t, path+".gone", path)
			closeIt := s.open(b, "eds:///shop"+query)
			before := s.saw()
			if !strings.HasPrefix(before, "10.1.0.1:1 ") {
				t.Fatalf("channel saw %s", before)
			}
			closeIt()
			catalogue.Set(adstest.Cluster("shop", "10.1.0.2:1"))
			rename(t, path, path+".gone")
			defer s.open(b, "eds:///shop"+query)()
			time.Sleep(10 * time.Minute)
			s.expect(before)
			rename(t, path+".gone", path)
			time.Sleep(145 * time.Second) // the longest backoff
			if got, want := s.saw(), strings.Replace(before, "10.1.0.1:1", "10.1.0.2:1", 1); !strings.HasSuffix(got, want) {
				t.Errorf("%q: channel saw\n%s\nwant %s at last", query, got, want)
			}
		})
	}
}
