//go:build kubernetes

// Package kubernetes tests discovery/kubernetes against a real API server with real controllers.
// Deployments create the pods. This package acts as the scheduler and the kubelets: the pods are
// gRPC servers on loopback. Their addresses in EndpointSlices are invented, because the API does
// not accept loopback addresses there. Run it with make kubernetes.
package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const timeout = 3 * time.Minute

// shared is the server of all tests that do not stop their server.
var shared *server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "understudy-kubernetes-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = newServer(dir); err == nil {
		defer func() { shared.kill() }()
		err = shared.start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

type server struct {
	dir, port string
	cmd       *exec.Cmd
	*api      // the administrator's client, which start sets
}

func newServer(dir string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return &server{dir: dir, port: port}, err
}

func (s *server) start(flags ...string) error {
	binary := os.Getenv("KUBE_APISERVER")
	if binary == "" {
		return errors.New("KUBE_APISERVER is not set; want the path of the server, which make kubernetes builds")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.cmd = exec.Command(binary, append([]string{s.dir, s.port}, flags...)...)
	s.cmd.Stderr = log
	if _, err := s.cmd.StdinPipe(); err != nil { // the server exits when this process ends and the pipe is closed
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	killTimer := time.AfterFunc(timeout, func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if killTimer.Stop(); err != nil || line != "ready\n" {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the API server ended, or printed %q instead of ready within %v; the end of its log:\n%s", line, timeout, text[max(0, len(text)-4000):])
	}
	if s.api != nil {
		return nil
	}
	ca, err := os.ReadFile(filepath.Join(s.dir, "apiserver.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	token, err := os.ReadFile(filepath.Join(s.dir, "token"))
	s.api = newAPI("https://127.0.0.1:"+s.port, string(token), roots)
	return err
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *server) compact(t *testing.T) {
	t.Helper()
	etcdURL, err := os.ReadFile(filepath.Join(s.dir, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	call := func(method string, body string, to any) {
		r, err := http.Post(string(etcdURL)+"/v3/kv/"+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, to); r.StatusCode != http.StatusOK || err != nil {
			t.Fatalf("etcd answers %s to %s: %s", r.Status, method, text)
		}
	}
	var now struct{ Header struct{ Revision string } }
	call("range", `{"key":"AA=="}`, &now)
	call("compaction", `{"revision":"`+now.Header.Revision+`","physical":true}`, &struct{}{})
}

// api is a client of the API server for one account. The source under test uses it as its
// transport. api then records the requests of the source, and the events that the source
// receives.
type api struct {
	base, token string
	roots       *x509.CertPool
	transport   *http.Transport

	mu       sync.Mutex
	open     map[net.Conn]bool
	resume   chan struct{} // if not nil, requests of the source wait until it is closed
	requests []request
	events   []watchEvent
}

type request struct {
	version string // the resourceVersion from which the request watches
	code    int    // the status code of the response, or 0 if there was no response
}

// watchEvent is an event that the source has received.
type watchEvent struct {
	Type   string
	Object struct {
		Code     int
		Metadata struct {
			Name, ResourceVersion string
			Annotations           map[string]string
		}
	}
}

func newAPI(base, token string, roots *x509.CertPool) *api {
	a := &api{base: base, token: token, roots: roots, open: make(map[net.Conn]bool)}
	a.transport = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				a.mu.Lock()
				a.open[conn] = true
				a.mu.Unlock()
			}
			return conn, err
		},
	}
	return a
}

func (a *api) withToken(token string) *api { return newAPI(a.base, token, a.roots) }

// cut closes all connections of the source. Further requests of the source wait until resume is
// called.
func (a *api) cut() (resume func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn := range a.open {
		_ = conn.Close()
	}
	clear(a.open)
	gate := make(chan struct{})
	a.resume = gate
	return func() { close(gate) }
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	gate := a.resume
	a.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.transport.RoundTrip(r)
	defer notifyChange()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.requests = append(a.requests, request{r.URL.Query().Get("resourceVersion"), 0})
		return nil, err
	}
	a.requests = append(a.requests, request{r.URL.Query().Get("resourceVersion"), response.StatusCode})
	if response.StatusCode == http.StatusOK {
		response.Body = &recordingBody{ReadCloser: response.Body, api: a}
	}
	return response, nil
}

type recordingBody struct {
	io.ReadCloser
	api  *api
	rest []byte
}

func (p *recordingBody) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.rest = append(p.rest, b[:n]...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return n, err
		}
		p.rest = rest
		var e watchEvent
		if json.Unmarshal(line, &e) == nil {
			p.api.mu.Lock()
			p.api.events = append(p.api.events, e)
			p.api.mu.Unlock()
			notifyChange()
		}
	}
}

func (a *api) history() ([]request, []watchEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]request(nil), a.requests...), append([]watchEvent(nil), a.events...)
}

type reply struct {
	code     int
	warnings []string
	body     []byte
}

// send sends a request. A body of type string is sent as YAML, and any other body is encoded as
// JSON. The body of a PATCH request is a strategic merge patch.
func (a *api) send(ctx context.Context, method, path string, body any) (reply, error) {
	kind := "application/json"
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		kind, text = "application/yaml", []byte(b)
	default:
		text, _ = json.Marshal(b)
		if method == http.MethodPatch {
			kind = "application/strategic-merge-patch+json"
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(text))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", kind)
	response, err := a.transport.RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header.Values("Warning"), all}, err
}

type object = map[string]any

// must sends a request, and fails the test if the request fails. It decodes the response into to,
// unless to is nil.
func (a *api) must(t *testing.T, method, path string, body, to any) {
	t.Helper()
	r, err := a.send(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.code >= 300 && (method != http.MethodDelete || r.code != http.StatusNotFound) { // a controller may have deleted it
		t.Fatalf("%s %s: %d %s", method, path, r.code, r.body)
	}
	if to != nil {
		if err := json.Unmarshal(r.body, to); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

func (a *api) account(t *testing.T, namespace, name string) *api {
	t.Helper()
	at := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	a.must(t, http.MethodPost, at, object{"metadata": object{"name": name}}, nil)
	var token struct{ Status struct{ Token string } }
	a.must(t, http.MethodPost, at+"/"+name+"/token", object{"spec": object{"expirationSeconds": 3600}}, &token)
	return a.withToken(token.Status.Token)
}

// watch watches the objects at path until ctx is done, and calls handle for each event. It begins
// with an event for each existing object, and reconnects after a failure.
func watch[T any](ctx context.Context, a *api, path string, handle func(kind string, object T)) {
	for ctx.Err() == nil {
		watchOnce(ctx, a, path, handle)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func watchOnce[T any](ctx context.Context, a *api, path string, each func(kind string, object T)) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path+"watch=1", nil)
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.transport.RoundTrip(r)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	for d := json.NewDecoder(response.Body); ; {
		var e struct {
			Type   string
			Object T
		}
		if response.StatusCode != http.StatusOK || d.Decode(&e) != nil || e.Type == "ERROR" {
			return
		}
		each(e.Type, e.Object)
	}
}

// changes contains a channel that is closed at the next change in a cluster, or nil if await does
// not wait.
var changes struct {
	sync.Mutex
	next chan struct{}
}

func nextChange() <-chan struct{} {
	changes.Lock()
	defer changes.Unlock()
	if changes.next == nil {
		changes.next = make(chan struct{})
	}
	return changes.next
}

func notifyChange() {
	changes.Lock()
	defer changes.Unlock()
	if changes.next != nil {
		close(changes.next)
		changes.next = nil
	}
}

// await waits until condition returns true. It calls condition again after each call of
// notifyChange.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for late := time.After(timeout); ; {
		next := nextChange()
		if condition() {
			return
		}
		select {
		case <-next:
		case <-late:
			t.Fatalf("timed out after %v: %s", timeout, what)
		}
	}
}
