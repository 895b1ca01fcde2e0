package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// apiServer is a fake API server with the EndpointSlices of one Service. Clients can ask for a
// watch in two ways: with the parameter "watch", or through the deprecated path that kuberesolver
// uses.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	slices  map[string]string
	log     []string // all events as JSON; event i has version i+1
	watches int
	down    bool
}

func startServer() *apiServer {
	s := &apiServer{slices: make(map[string]string)}
	s.changed = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

func (s *apiServer) stop() {
	s.mu.Lock()
	s.down = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.CloseClientConnections()
	s.Close()
}

// awaitWatches returns an error after 30 s.
func (s *apiServer) awaitWatches(n int) error {
	expired := false
	timer := time.AfterFunc(30*time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		expired = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.watches < n && !expired {
		s.changed.Wait()
	}
	if s.watches < n {
		return fmt.Errorf("%d watches began in 30 s, want %d", s.watches, n)
	}
	return nil
}

func (s *apiServer) set(name string, port int, endpoints ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "MODIFIED"
	if _, known := s.slices[name]; !known {
		kind = "ADDED"
	}
	s.slices[name] = fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","resourceVersion":"%d","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[%s],"ports":[{"name":"grpc","port":%d}]}`,
		name, len(s.log)+1, strings.Join(endpoints, ","), port)
	s.add(kind, s.slices[name])
}

func (s *apiServer) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add("DELETED", s.slices[name])
	delete(s.slices, name)
}

func (s *apiServer) add(kind, object string) {
	s.log = append(s.log, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object))
	s.changed.Broadcast()
}

// serve sends new events to every watch. If a watch doesn't give a version, it gets all slices
// first.
func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	parameters := r.URL.Query()
	if !strings.Contains(r.URL.Path, "/endpointslices") || !strings.Contains(r.URL.Path, "/watch/") && !parameters.Has("watch") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	s.changed.Broadcast()
	next := len(s.log)
	if version := parameters.Get("resourceVersion"); version != "" {
		next, _ = strconv.Atoi(version)
	} else {
		for _, name := range slices.Sorted(maps.Keys(s.slices)) {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", s.slices[name])
		}
	}
	if parameters.Get("sendInitialEvents") == "true" {
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", next)
	}
	for w.(http.Flusher).Flush(); !s.down; w.(http.Flusher).Flush() {
		for ; next < len(s.log); next++ {
			fmt.Fprintln(w, s.log[next])
		}
		w.(http.Flusher).Flush()
		s.changed.Wait()
	}
}
