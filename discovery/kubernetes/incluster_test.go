package kubernetes

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

type pod struct {
	*httptest.Server
	files    string
	token    chan string // contains the token that the server accepts
	requests chan *http.Request
	updates  chan string
	errors   chan error
}

func newPod(t *testing.T) *pod {
	p := &pod{token: make(chan string, 1), requests: make(chan *http.Request, 100), updates: make(chan string, 100), errors: make(chan error, 100)}
	p.token <- "one"
	p.Server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() { _ = p.Config.Close(); p.Close() })
	p.files = t.TempDir()
	p.write(t, "token", "one\n")
	p.write(t, "namespace", "shop")
	p.write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})))
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(u.Host)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	return p
}

func (p *pod) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.files, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve sends the slices and ends the watch. If the client already has the slices, serve sends a
// bookmark instead, because the source would report a watch that ends without an event.
func (p *pod) serve(w http.ResponseWriter, r *http.Request) {
	p.requests <- r
	token := <-p.token
	p.token <- token
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Query().Get("resourceVersion") == "" {
		_, _ = fmt.Fprintln(w, `{"type":"ADDED","object":{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"port":80}]}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		return
	}
	_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}`)
}

func (p *pod) start(t *testing.T) {
	r := new(discovery.Receiver).With(discovery.Hooks{
		Update:      func(a discovery.Answer) error { p.updates <- formatEndpoints(a); return nil },
		Fail:        func(err error) { p.errors <- err },
		Confirm:     func() {},
		Unconfirmed: func(err error, _ time.Time) { p.errors <- err },
	})
	s := source{query{services: "web"}, server{accountDir: p.files}}
	if err := s.Check(false); err != nil {
		t.Fatal(err)
	}
	started, err := s.Start(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Close)
}

func await[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("timed out waiting for %s", what)
		panic("unreachable")
	}
}

// In a pod, the source must read the address and the CA of the API server, the token and the
// namespace from the environment. If the token is rejected, the source must read the token's file
// again immediately.
func TestInCluster(t *testing.T) {
	p := newPod(t)
	p.start(t)
	if got := await(t, p.updates, "an update"); got != "0/10.0.0.1:80=healthy" {
		t.Errorf("the update is %s, want 10.0.0.1", got)
	}
	if r := await(t, p.requests, "a request"); !strings.HasPrefix(r.URL.Path, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices") {
		t.Errorf("the request is for %s, want the namespace of the pod", r.URL.Path)
	}
	p.write(t, "token", "two")
	<-p.token
	p.token <- "two"
	for {
		r := await(t, p.requests, "a request with the new token")
		if r.Header.Get("Authorization") == "Bearer two" {
			break
		}
	}
	select {
	case err := <-p.errors:
		t.Errorf("the replaced token causes the error %v", err)
	default:
	}
}

func TestInClusterWithRejectedToken(t *testing.T) {
	p := newPod(t)
	<-p.token
	p.token <- "another"
	p.start(t)
	if err := await(t, p.errors, "an error"); !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("the error is %v, want 401", err)
	}
	if n := len(p.requests); n < 2 {
		t.Errorf("%d requests before the error, want a retry, because the token may have been replaced", n)
	}
}

func TestInClusterWithWrongCA(t *testing.T) {
	for _, text := range []string{"", "nonsense"} {
		p := newPod(t)
		p.write(t, "ca.crt", text)
		p.start(t)
		want := filepath.Join(p.files, "ca.crt") + " holds no certificate"
		if err := await(t, p.errors, "an error"); !strings.Contains(err.Error(), want) {
			t.Errorf("with the roots %q the error is %v, want %s", text, err, want)
		}
	}
	p := newPod(t)
	root, err := os.ReadFile(testcert.New(t).File())
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "ca.crt", string(root))
	p.start(t)
	if err := await(t, p.errors, "an error"); !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("with other roots the error is %v", err)
	}
}

func TestInClusterWithoutNamespace(t *testing.T) {
	p := newPod(t)
	p.write(t, "namespace", "No/Namespace")
	p.start(t)
	if err := await(t, p.errors, "an error"); !strings.Contains(err.Error(), "the target gives no namespace, and the pod has none") {
		t.Errorf("the error is %v", err)
	}
}

// The files of the token and the CA must be read for each request, because they are replaced from
// time to time. After a change of the CA, a new transport must be used.
func TestFilesAreReadAgain(t *testing.T) {
	p := &pod{files: t.TempDir()}
	replaceCA := func() {
		root, err := os.ReadFile(testcert.New(t).File())
		if err != nil {
			t.Fatal(err)
		}
		p.write(t, "ca.crt", string(root))
	}
	h := &apiClient{server: server{accountDir: p.files}}
	read := func() (rt http.RoundTripper, token string) {
		rt, token, err := h.credentials()
		if err != nil {
			t.Fatal(err)
		}
		return rt, token
	}
	p.write(t, "token", "one")
	replaceCA()
	rt, token := read()
	p.write(t, "token", "two")
	if again, replaced := read(); again != rt || token != "one" || replaced != "two" {
		t.Errorf("the tokens are %s and %s, want the one in the file", token, replaced)
	}
	replaceCA()
	if again, _ := read(); again == rt {
		t.Error("the new roots are not used")
	}
}

// A transport that was replaced must close its idle connections after a timeout. Otherwise, a
// connection that was used by a watch during the replacement would never be closed.
func TestReplacedTransportClosesIdleConnections(t *testing.T) {
	h := &apiClient{server: server{accountDir: newPod(t).files}}
	if _, _, err := h.credentials(); err != nil {
		t.Fatal(err)
	}
	if h.podTransport.IdleConnTimeout <= 0 {
		t.Error("idle connections are never closed")
	}
}
