// Package kubetest provides a Kubernetes API server that serves EndpointSlices. For tests only.
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

// Server is a Kubernetes API server with one namespace. It sends each change to all watches
// immediately. Its methods are safe for concurrent use.
type Server struct {
	// URL is the server's URL.
	URL string

	server *httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	slices  map[string]string // JSON of each slice, by name
	log     []string          // all events, in JSON; event i has version i+1
	watches int
	down    bool
}

// Start starts a server that has no slices and stops at the end of the test.
func Start(t testing.TB) *Server {
	s := &Server{slices: make(map[string]string)}
	s.changed = sync.NewCond(&s.mu)
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(func() {
		s.SetDown(true)
		_ = s.server.Config.Close()
		s.server.Close()
	})
	return s
}

// Kubeconfig writes a kubeconfig for the server and returns its path.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("current-context: here\ncontexts: [{name: here, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\n", s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SetDown makes the server end all watches and refuse requests, or serve again.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	s.changed.Broadcast()
}

// Watches returns the number of watches that have begun.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// Set adds or changes an EndpointSlice of a Service. The endpoints are given in JSON. The port is
// named grpc.
func (s *Server) Set(service, name string, port int, endpoints ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "MODIFIED"
	if _, known := s.slices[name]; !known {
		kind = "ADDED"
	}
	s.slices[name] = fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d","labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","endpoints":[%s],"ports":[{"name":"grpc","port":%d}]}`,
		name, len(s.log)+1, service, strings.Join(endpoints, ","), port)
	s.add(kind, s.slices[name])
}

// Delete deletes a slice.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add("DELETED", s.slices[name])
	delete(s.slices, name)
}

// add adds an event to the log. The caller must hold the lock.
func (s *Server) add(kind, object string) {
	s.log = append(s.log, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object))
	s.changed.Broadcast()
}

// serve serves a watch.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
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
	switch {
	case s.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case !strings.Contains(r.URL.Path, "/endpointslices") || !r.URL.Query().Has("watch"):
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.watches++
	at, services := len(s.log), r.URL.Query().Get("labelSelector")
	_, services, _ = strings.Cut(strings.TrimSuffix(services, ")"), "(")
	wanted := func(text string) bool {
		return slices.ContainsFunc(strings.Split(services, ","), func(name string) bool { return strings.Contains(text, fmt.Sprintf(`service-name":%q`, name)) })
	}
	if version := r.URL.Query().Get("resourceVersion"); version != "" {
		at, _ = strconv.Atoi(version)
	} else {
		for _, name := range slices.Sorted(maps.Keys(s.slices)) {
			if wanted(s.slices[name]) {
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", s.slices[name])
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", at)
	}
	w.(http.Flusher).Flush()
	for !s.down && r.Context().Err() == nil {
		for ; at < len(s.log); at++ {
			if wanted(s.log[at]) {
				_, _ = fmt.Fprintln(w, s.log[at])
			}
		}
		w.(http.Flusher).Flush()
		s.changed.Wait()
	}
}
