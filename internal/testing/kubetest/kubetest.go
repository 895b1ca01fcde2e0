// Package kubetest has a Kubernetes API server for tests. It serves EndpointSlices.
package kubetest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server is a Kubernetes API server with one namespace. Changes go to all watches immediately. Its
// methods may be called concurrently.
type Server struct {
	URL string

	server *httptest.Server

	mu          sync.Mutex
	changed     *sync.Cond
	slices      map[string]string
	baseVersion int
	events      []string // as JSON; events[i] has resource version baseVersion+i+1
	watches     int
	down        bool
}

// New returns a server without EndpointSlices, to be used as an http.Handler. The resource version
// of its first event is version+1. A watch that starts at a later version than the server's fails,
// as it does after a backup has been restored.
func New(version int) *Server {
	s := &Server{slices: make(map[string]string), baseVersion: version}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func Start(t testing.TB) *Server {
	s := New(0)
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL
	t.Cleanup(func() {
		s.SetDown(true)
		_ = s.server.Config.Close()
		s.server.Close()
	})
	return s
}

func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("current-context: here\ncontexts: [{name: here, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\n", s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SetDown ends all watches and refuses requests if down is true, and serves again if it's false.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	s.changed.Broadcast()
}

func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// Set adds or changes an EndpointSlice of a Service. Each endpoint is JSON. The port is named grpc.
func (s *Server) Set(service, name string, port int, endpoints ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "MODIFIED"
	if _, exists := s.slices[name]; !exists {
		kind = "ADDED"
	}
	s.slices[name] = fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d","labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","endpoints":[%s],"ports":[{"name":"grpc","port":%d}]}`,
		name, s.version()+1, service, strings.Join(endpoints, ","), port)
	s.add(kind, s.slices[name])
}

func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add("DELETED", s.slices[name])
	delete(s.slices, name)
}

func (s *Server) add(kind, object string) {
	s.events = append(s.events, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object))
	s.changed.Broadcast()
}

func (s *Server) version() int { return s.baseVersion + len(s.events) }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		case <-stop:
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	next, code, reason := s.begin(r)
	if code != http.StatusOK {
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, reason)
		return
	}
	s.watches++
	_, services, _ := strings.Cut(strings.TrimSuffix(r.URL.Query().Get("labelSelector"), ")"), "(")
	matches := func(text string) bool {
		return slices.ContainsFunc(strings.Split(services, ","), func(name string) bool { return strings.Contains(text, fmt.Sprintf(`service-name":%q`, name)) })
	}
	if r.URL.Query().Get("resourceVersion") == "" {
		for _, name := range slices.Sorted(maps.Keys(s.slices)) {
			if matches(s.slices[name]) {
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", s.slices[name])
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", next)
	}
	w.(http.Flusher).Flush()
	for !s.down && r.Context().Err() == nil {
		for ; next < s.version(); next++ {
			if event := s.events[next-s.baseVersion]; matches(event) {
				_, _ = fmt.Fprintln(w, event)
			}
		}
		w.(http.Flusher).Flush()
		s.changed.Wait()
	}
}

// begin must be called with the lock held.
func (s *Server) begin(r *http.Request) (next, code int, reason string) {
	version := r.URL.Query().Get("resourceVersion")
	next, err := strconv.Atoi(version)
	switch {
	case s.down:
		return 0, http.StatusServiceUnavailable, ""
	case !strings.Contains(r.URL.Path, "/endpointslices") || !r.URL.Query().Has("watch"):
		return 0, http.StatusForbidden, ""
	case version == "":
		return s.version(), http.StatusOK, ""
	case err != nil:
		return 0, http.StatusBadRequest, ""
	case next > s.version():
		return 0, http.StatusGatewayTimeout, `{"message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`
	case next < s.baseVersion:
		return 0, http.StatusGone, `{"message":"too old resource version","code":410}`
	}
	return next, http.StatusOK, ""
}
