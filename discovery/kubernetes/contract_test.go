package kubernetes

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

func TestSourceContract(t *testing.T) {
	t.Parallel()
	const all = `{"type":"ADDED","object":{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"name":"","port":80}]}}
{"type":"WHAT","object":1}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	for about, reply := range map[string]struct {
		code int
		body string
	}{
		"healthy":    {200, all},
		"down":       {-1, ""},
		"silent":     {200, ""},
		"forbidden":  {403, "no"},
		"garbage":    {200, "<html>"},
		"wrong kind": {200, `{"type":"ADDED","object":[1]}`},
		"endless":    {200, `{"type":"` + strings.Repeat("a", maxEvent+1)},
	} {
		t.Run(about, func(t *testing.T) {
			sourcetest.Run(t, func(*testing.T) discovery.Source {
				api := &fakeAPIServer{serve: func(_ int, _ url.Values, w io.Writer, done <-chan struct{}) int {
					w.(*firstWrite).begin(reply.code)
					if writeAll(w, reply.body); reply.code == http.StatusOK {
						return waitUntilDone(done)
					}
					return 0
				}}
				s := source{query{namespace: "shop", services: "web"}, server{host: "http://x", transport: api}}
				return discovery.Shared(s, linger, s)
			})
		})
	}
}
