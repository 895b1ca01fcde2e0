package eds

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"eds://127.0.0.1:1/shop", "eds://a:1,b:2/x/y?cds=true", "eds:///shop", "eds:shop", "eds://a/x", "eds://:1/x", "eds://a:0/x", "eds://a:1,a:1/x",
		"eds://[::1]:1/xdstp://a/envoy.config.cluster.v3.Cluster/b?fallbackOnReachabilityOnly=true", "eds://a:1/%ff", "eds://a:1/x?cds=maybe",
		"eds://a:1/x?cds=1&refresh=5s&failoverTimeout=3s", "eds://a:1/x#y",
	} {
		f.Add(seed)
	}
	b := given.Builder(Scheme)
	f.Fuzz(func(t *testing.T, text string) { given.CheckTarget(t, b, text) })
}

// FuzzBootstrap checks that any text is either parsed as a bootstrap or refused with one short
// line. It also checks that each server of a bootstrap can be found by its URI, and that the node
// can be marshaled.
func FuzzBootstrap(f *testing.F) {
	for _, seed := range []string{
		`{"xds_servers":[{"server_uri":"dns:///a:1","channel_creds":[{"type":"google_default"},{"type":"insecure"}],"server_features":["xds_v3"]}],
			"node":{"id":"me","locality":{"region":"r","zone":"z"},"metadata":{"k":"v"},"unheard_of":1},"certificate_providers":{}}`,
		`{"xds_servers":[{"server_uri":"a:1","channel_creds":[{"type":"tls","config":{}}]},{"server_uri":"b:1"}]}`,
		`{"xds_servers":[{"channel_creds":[{"type":"tls","config":{"certificate_file":"a"}}]}]}`,
		`{"xds_servers":[{"server_uri":"a","channel_creds":[{"type":"x\n"}]}],"node":null}`,
		`{"xds_servers":[{"server_uri":"a","channel_creds":[{"type":"` + strings.Repeat("\xe0", 1000) + `"}` + strings.Repeat(`,{"type":"x"}`, 1000) + `]}]}`,
		`{"xds_servers":[{"server_uri":"` + strings.Repeat("a", 3000) + `"}]}`,
		`{"node":{"id":7}}`, `{"node":"x"}`, `[]`, `null`, `{`,
	} {
		f.Add([]byte(seed))
	}
	checkLine := func(t *testing.T, err error) {
		if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000 {
			t.Errorf("error is not a short line: %.3000q", err)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBootstrap(text)
		if err != nil {
			checkLine(t, err)
			return
		}
		if _, err := proto.Marshal(b.nodeOrDefault()); err != nil {
			t.Errorf("the node cannot be sent: %v", err)
		}
		for i := range b.Servers {
			s := &b.Servers[i]
			if found := b.find(s.URI); found == nil || strings.TrimPrefix(found.URI, "dns:///") != strings.TrimPrefix(s.URI, "dns:///") {
				t.Errorf("server %q is not found by its URI", s.URI)
			}
			for i := range s.Creds {
				s.Creds[i].Config = withoutFiles(s.Creds[i].Config)
			}
			if c, err := s.credentials(); err != nil {
				checkLine(t, err)
			} else if c == nil {
				t.Errorf("server %q has no credentials and no error", s.URI)
			}
		}
	})
}

// withoutFiles returns nil for a configuration that contains paths of files, because a fuzz test
// must not open arbitrary files.
func withoutFiles(config json.RawMessage) json.RawMessage {
	var files tlsFiles
	if json.Unmarshal(config, &files) == nil && files != (tlsFiles{}) {
		return nil
	}
	return config
}

// FuzzResource checks that a resource of either type is refused with one line, or becomes an answer
// or a cluster. The result must not depend on resources that were read before, because channels
// share the result.
func FuzzResource(f *testing.F) {
	add := func(m proto.Message) {
		wire, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		_, isCluster := m.(*clusterv3.Cluster)
		f.Add(wire, isCluster)
	}
	add(adstest.Cluster("a", "10.0.0.1:1", "[::1]:2"))
	add(adstest.EDS("a"))
	add(adstest.LogicalDNS("a", "b.test", 443))
	add(adstest.Aggregate("a", "b", "c"))
	add(withEndpoints("a", clusterv3.Cluster_STATIC, "10.0.0.1:1"))
	strictDNS := withEndpoints("a", clusterv3.Cluster_STRICT_DNS, "10.0.0.1:1")
	strictDNS.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "b.test"
	add(strictDNS)
	f.Fuzz(func(t *testing.T, wire []byte, isCluster bool) {
		var m proto.Message = new(endpointv3.ClusterLoadAssignment)
		if isCluster {
			m = new(clusterv3.Cluster)
		}
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		got, err := readResource(m)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("error is not one line: %q", err)
			}
			return
		}
		if again, err := readResource(m); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v becomes %+v, then %+v, %v", m, got, again, err)
		}
		if a, ok := got.(*discovery.Answer); ok {
			if _, err := topology.Check(a, nil); err != nil {
				t.Errorf("%v becomes an invalid answer: %v", m, err)
			}
			for _, note := range a.Notes {
				if strings.ContainsAny(note, "\n\r\x00\x1b") {
					t.Errorf("note is not one line: %q", note)
				}
			}
		}
	})
}
