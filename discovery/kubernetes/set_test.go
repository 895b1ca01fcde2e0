package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
)

const grpcPort = `"ports":[{"name":"grpc","port":80}]`

func parseSlice(t *testing.T, name, rest string) *slice {
	t.Helper()
	text := fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"1","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4",%s}`, name, rest)
	return sliceOfText(t, text)
}

func formatEndpoints(a discovery.Answer) string {
	var b strings.Builder
	for i, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				fmt.Fprintf(&b, "%d%s/%s=%v ", i, l.Zone, strings.Join(e.Addresses, "+"), e.Health)
			}
		}
	}
	return strings.TrimSpace(b.String())
}

func TestAnswer(t *testing.T) {
	endpoints := func(rest string) string { return `"endpoints":[` + rest + `],` + grpcPort }
	for _, c := range []struct {
		about   string
		port    string
		slices  []string
		deleted []string
		want    string
	}{
		{"absent conditions mean ready", "", []string{endpoints(`{"addresses":["10.0.0.1"]}`)}, nil, "0/10.0.0.1:80=healthy"},
		{"a union over slices", "", []string{endpoints(`{"addresses":["10.0.0.1"],"zone":"a"}`), endpoints(`{"addresses":["10.0.0.2"],"zone":"b"}`)}, nil,
			"0a/10.0.0.1:80=healthy 0b/10.0.0.2:80=healthy"},
		{"an endpoint that moves between slices is one endpoint", "", []string{endpoints(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"},"conditions":{"ready":false}}`), endpoints(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"u"}}`)}, nil,
			"0/10.0.0.1:80=healthy"},
		{"a reused address", "", []string{endpoints(`{"addresses":["10.0.0.1"],"targetRef":{"uid":"a"},"conditions":{"ready":false,"serving":true,"terminating":true}},{"addresses":["10.0.0.1"],"targetRef":{"uid":"b"}}`)}, nil,
			"0/10.0.0.1:80=healthy"},
		{"a terminating endpoint drains", "", []string{endpoints(`{"addresses":["10.0.0.1"],"conditions":{"ready":false,"serving":true,"terminating":true}},{"addresses":["10.0.0.2"]}`)}, nil,
			"0/10.0.0.1:80=draining 0/10.0.0.2:80=healthy"},
		{"a terminating endpoint serves if none is ready", "", []string{endpoints(`{"addresses":["10.0.0.1"],"conditions":{"ready":false,"serving":true,"terminating":true}},{"addresses":["10.0.0.2"],"conditions":{"ready":false}}`)}, nil,
			"0/10.0.0.1:80=healthy 0/10.0.0.2:80=unhealthy"},
		{"ready wins over terminating", "", []string{endpoints(`{"addresses":["10.0.0.1"],"conditions":{"ready":true,"serving":false,"terminating":true}}`)}, nil, "0/10.0.0.1:80=healthy"},
		{"an empty slice", "", []string{`"endpoints":[]`}, nil, ""},
		{"a port number for each slice", "grpc", []string{endpoints(`{"addresses":["10.0.0.1"]}`), `"endpoints":[{"addresses":["10.0.0.2"]}],"ports":[{"name":"grpc","port":81}]`}, nil,
			"0/10.0.0.1:80=healthy 0/10.0.0.2:81=healthy"},
		{"the port named grpc", "", []string{`"endpoints":[{"addresses":["10.0.0.2"]}],"ports":[{"name":"http","port":8080},{"name":"grpc","port":81}]`}, nil, "0/10.0.0.2:81=healthy"},
		{"several ports without a default", "", []string{`"endpoints":[{"addresses":["10.0.0.2"]}],"ports":[{"name":"a","port":1},{"name":"b","port":2}]`}, nil, "want one of a:1, b:2"},
		{"headless, with a port number", "7", []string{`"endpoints":[{"addresses":["10.0.0.2"]}]`}, nil, "0/10.0.0.2:7=healthy"},
		{"headless, without a port", "", []string{`"endpoints":[{"addresses":["10.0.0.2"]}]`}, nil, "want a port number"},
		{"no slice", "", nil, nil, "ExternalName"},
		{"a deleted slice", "", nil, []string{endpoints(`{"addresses":["10.0.0.1"]}`)}, "0/10.0.0.1:80=healthy"},
		{"an existing slice overrides a deleted one", "", []string{endpoints(`{"addresses":["10.0.0.1"],"conditions":{"ready":false}}`)}, []string{endpoints(`{"addresses":["10.0.0.1"]}`)}, "0/10.0.0.1:80=unhealthy"},
		{"an invalid address", "", []string{endpoints(`{"addresses":["x"]},{"addresses":["10.0.0.1"]},{"addresses":[]}`)}, nil, "0/10.0.0.1:80=healthy"},
	} {
		t.Run(c.about, func(t *testing.T) {
			existing, deleted := map[string]*slice{}, map[string]*slice{}
			for i, rest := range c.slices {
				existing[fmt.Sprint("s", i)] = parseSlice(t, fmt.Sprint("s", i), rest)
			}
			for i, rest := range c.deleted {
				deleted[fmt.Sprint("l", i)] = parseSlice(t, fmt.Sprint("l", i), rest)
			}
			a, err := answer(query{namespace: "shop", services: "web", port: c.port}, &snapshot{existing: existing, deleted: deleted})
			switch {
			case err != nil:
				if c.want == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %q, want %q", err, c.want)
				}
			case formatEndpoints(a) != c.want || !a.Empty:
				t.Errorf("the answer is %q, want %q", formatEndpoints(a), c.want)
			}
		})
	}
}
