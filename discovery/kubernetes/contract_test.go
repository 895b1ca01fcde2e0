package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

type fakeTransport struct {
	code int
	body string
}

func (f *fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.code == 0 {
		return nil, errors.New("connection refused")
	}
	reader, writer := io.Pipe()
	go func() {
		_, _ = io.Copy(writer, strings.NewReader(f.body))
		if f.code == http.StatusOK {
			<-r.Context().Done()
		}
		_ = writer.Close()
	}()
	return &http.Response{StatusCode: f.code, Header: http.Header{}, Body: reader}, nil
}

func TestSourceContract(t *testing.T) {
	t.Parallel()
	const all = `{"type":"ADDED","object":{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"name":"","port":80}]}}
{"type":"WHAT","object":1}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	for about, f := range map[string]*fakeTransport{
		"healthy":    {200, all},
		"down":       {},
		"silent":     {200, ""},
		"forbidden":  {403, "no"},
		"garbage":    {200, "<html>"},
		"wrong kind": {200, `{"type":"ADDED","object":[1]}`},
		"endless":    {200, `{"type":"` + strings.Repeat("a", maxEvent+1)},
	} {
		t.Run(about, func(t *testing.T) {
			sourcetest.Run(t, func(*testing.T) discovery.Source {
				s := source{query{namespace: "shop", services: "web"}, server{host: "http://x", transport: f}}
				return discovery.Shared(s, linger, s)
			})
		})
	}
}
