package eds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func bootstrapFile(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(bootstrapFileVar, path)
}

// nodeServer starts a server that sends the node of each stream to nodes. It also returns the
// server's address and a bootstrap with the server. Each test needs its own server, because the
// next channel may share a stream that is still ending.
func nodeServer(t *testing.T) (nodes chan string, address, bootstrap string) {
	t.Helper()
	nodes = make(chan string, 1)
	address = serve(t, func(s *adstest.Stream) error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		nodes <- r.GetNode().GetId() + " " + r.GetNode().GetLocality().GetRegion() + " " + r.GetNode().GetMetadata().GetFields()["k"].GetStringValue()
		s.Respond("1", "n", adstest.Cluster("c", "10.0.0.1:1"))
		return s.Drain()
	})
	return nodes, address, `{"xds_servers":[{"server_uri":"` + address + `","channel_creds":[{"type":"google_default"},{"type":"insecure"}],"server_features":["xds_v3"]}],
		"node":{"id":"me","locality":{"region":"r"},"metadata":{"k":"v"},"unheard_of":1},"certificate_providers":{}}`
}

func TestBootstrapServerAndNode(t *testing.T) {
	await := func(t *testing.T, target string, nodes chan string) {
		c := build(t, target)
		if got := wait(t, "node", nodes); got != "me r v" {
			t.Errorf("node = %q, want the bootstrap's", got)
		}
		wait(t, "state", c.states)
	}
	t.Run("file", func(t *testing.T) {
		nodes, _, text := nodeServer(t)
		bootstrapFile(t, text)
		t.Setenv(bootstrapConfigVar, "the file comes first")
		await(t, "eds:///c", nodes)
	})
	t.Run("content", func(t *testing.T) {
		nodes, _, text := nodeServer(t)
		t.Setenv(bootstrapConfigVar, text)
		await(t, "eds:///c", nodes)
	})
	t.Run("node for a server that is not listed", func(t *testing.T) {
		nodes, address, text := nodeServer(t)
		t.Setenv(bootstrapConfigVar, strings.Replace(text, address, "other:1", 1))
		await(t, "eds://"+address+"/c", nodes)
	})
}

func TestInvalidBootstrap(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                      "not the JSON of a bootstrap",
		`{"xds_servers":[]}`:                     "names no server",
		`{"node":{"id":["x"]}}`:                  "node: ",
		`{"xds_servers":[{"server_uri":"s:1"}]}`: "server s:1 has the channel_creds [], want one of",
		`{"xds_servers":[{"server_uri":"s:1","channel_creds":[{"type":"google_default"},{"type":"x"}]}]}`: `has the channel_creds ["google_default" "x"], want one of type "tls" or "insecure"`,
		`{"xds_servers":[{"server_uri":"s:1","channel_creds":[{"type":"tls","config":[]}]}]}`:             "channel_creds of type tls",
	} {
		t.Setenv(bootstrapConfigVar, text)
		if got := buildError(t, "eds:///c"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", text, got, want)
		}
	}
	bootstrapFile(t, "{")
	c := build(t, "eds:///c")
	expectError(t, c, os.Getenv(bootstrapFileVar))
	t.Setenv(bootstrapFileVar, "")
	for files, want := range map[string]string{
		`"ca_certificate_file":"bootstrap_test.go"`: "holds no certificate in PEM",
		`"certificate_file":"bootstrap_test.go"`:    "certificate_file and private_key_file: ",
		`"private_key_file":"bootstrap_test.go"`:    "certificate_file and private_key_file: ",
	} {
		t.Setenv(bootstrapConfigVar, `{"xds_servers":[{"server_uri":"s:1","channel_creds":[{"type":"tls","config":{`+files+`}}]}]}`)
		if err := given.Builder(Scheme).Check(target(t, "eds:///c"), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Check = %v, want %q", files, err, want)
		}
	}
}
