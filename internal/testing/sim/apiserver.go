package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	longestWatch = 90 * time.Second
	bookmarkEach = 20 * time.Second
)

type trouble int

const (
	noTrouble   trouble = iota
	apiDown             // refuses connections
	apiSilent           // answers neither old nor new requests
	apiBusy             // answers 429
	apiForgets          // discards old versions and ends watches
	apiEnds             // ends watches early
	apiReplaced         // is down, and comes back with lower versions
	troubles
)

func (t trouble) String() string {
	return "the API server " + [...]string{"is well", "refuses connections", "does not answer", "is too busy", "forgets old versions", "ends watches soon", "is replaced from a backup"}[t]
}

// apiServer is a fake Kubernetes API server that serves EndpointSlices. It implements
// http.RoundTripper.
type apiServer struct {
	ctx context.Context //nolint:containedctx // ends when the server stops
	old bool            // does not know sendInitialEvents

	mu      sync.Mutex
	rand    *rand.Rand
	slices  map[string]kubeSlice
	without map[string]time.Time
	log     []apiEvent // events after version oldest
	version int
	oldest  int
	trouble trouble
	epoch   int           // watches that began in an earlier epoch end
	changed chan struct{} // closed at each change
}

type apiEvent struct {
	version       int
	service, text string
}

func newAPIServer(ctx context.Context, r *rand.Rand) *apiServer {
	return &apiServer{ctx: ctx, rand: r, old: r.IntN(3) == 0, slices: make(map[string]kubeSlice), without: make(map[string]time.Time), version: 1_000_000, oldest: 1_000_000, changed: make(chan struct{})}
}

func (s *apiServer) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *apiServer) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.slices))
}

func (s *apiServer) get(name string) kubeSlice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slices[name]
}

// set stores a slice and reports whether it differs from the stored one.
func (s *apiServer) set(name string, to kubeSlice) bool {
	s.mu.Lock()
	before, known := s.slices[name]
	s.mu.Unlock()
	if known && before.json(name, 0) == to.json(name, 0) {
		return false
	}
	s.change(func() {
		if !s.serves(to.service) {
			s.without[to.service] = time.Now()
		}
		s.slices[name] = to
		s.add(map[bool]string{false: "ADDED", true: "MODIFIED"}[known], name, to)
	})
	return true
}

// serves reports whether a Service has a slice. The caller holds the lock.
func (s *apiServer) serves(service string) bool {
	for _, sl := range s.slices {
		if sl.service == service {
			return true
		}
	}
	return false
}

// servesFor returns for how long a Service has had slices, or 0 if it has none.
func (s *apiServer) servesFor(service string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(service) {
		return 0
	}
	return time.Since(s.without[service])
}

func (s *apiServer) remove(name string) {
	s.change(func() {
		s.add("DELETED", name, s.slices[name])
		delete(s.slices, name)
	})
}

// add appends an event to the log. The caller holds the lock.
func (s *apiServer) add(kind, name string, of kubeSlice) {
	s.version++
	s.log = append(s.log, apiEvent{s.version, of.service, eventText(kind, of.json(name, s.version))})
}

func eventText(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

func bookmarkText(version int, initial bool) string {
	annotations := ""
	if initial {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return eventText("BOOKMARK", fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"%s}}`, version, annotations))
}

// forget discards all versions except the last. The caller holds the lock.
func (s *apiServer) forget() { s.oldest, s.log = s.version, nil }

func (s *apiServer) fail(t trouble) string {
	s.change(func() {
		if s.trouble = t; t != apiSilent {
			s.epoch++
		}
		if t == apiForgets {
			s.forget()
		}
	})
	return t.String()
}

// restore ends the fault. Hanging requests then continue.
func (s *apiServer) restore() {
	s.change(func() {
		if s.trouble == apiReplaced {
			s.version -= 100_000
			s.forget()
		}
		s.trouble = noTrouble
	})
}

// now returns the current fault, and a channel that is closed at the next change.
func (s *apiServer) now() (t trouble, epoch int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble, s.epoch, s.changed
}

func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	t, epoch, changed := s.now()
	for ; t == apiSilent; t, epoch, changed = s.now() {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-s.ctx.Done():
			return nil, errors.New("connection reset")
		case <-changed:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	if t == apiDown || t == apiReplaced || s.ctx.Err() != nil {
		return nil, errors.New("dial tcp 10.9.0.6:80: connect: connection refused")
	}
	if code, text := s.refusal(t, r, version); code != 0 {
		return answered(code, text), nil
	}
	_, services, _ := strings.Cut(strings.TrimSuffix(q.Get("labelSelector"), ")"), "(")
	w := &apiWatch{s, strings.Split(services, ","), version, epoch, time.Now().Add(s.life())}
	if !q.Has("watch") {
		return answered(http.StatusOK, fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.version, strings.Join(w.all(), ","))), nil
	}
	text := ""
	switch {
	case version == 0:
		for _, sl := range w.all() {
			text += eventText("ADDED", sl)
		}
		w.at = s.version
		text += bookmarkText(s.version, true)
	case version < s.oldest:
		return answered(http.StatusOK, eventText("ERROR", `{"message":"too old resource version","code":410}`)), nil
	}
	reader, writer := io.Pipe()
	go w.run(r.Context(), writer, text)
	response := answered(http.StatusOK, "")
	response.Body = reader
	return response, nil
}

// refusal returns the error response to a request, or code 0 if the request is served. The caller
// holds the lock.
func (s *apiServer) refusal(t trouble, r *http.Request, version int) (code int, text string) {
	switch {
	case t == apiBusy:
		return http.StatusTooManyRequests, `{"message":"too many requests, please try again later"}`
	case !strings.HasSuffix(r.URL.Path, "/namespaces/sim/endpointslices"):
		return http.StatusForbidden, `{"message":"forbidden"}`
	case s.old && r.URL.Query().Has("sendInitialEvents"):
		return http.StatusUnprocessableEntity, `{"message":"sendInitialEvents is forbidden"}`
	case version > 0 && version < s.oldest && s.rand.IntN(2) == 0:
		return http.StatusGone, `{"message":"too old resource version","code":410}`
	case version > s.version && s.rand.IntN(2) == 0:
		return http.StatusGatewayTimeout, `{"message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`
	}
	return 0, ""
}

func answered(code int, text string) *http.Response {
	h := http.Header{}
	if code == http.StatusTooManyRequests {
		h.Set("Retry-After", "3")
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(text))}
}

// life returns a random duration for a watch. The caller holds the lock.
func (s *apiServer) life() time.Duration {
	if s.trouble == apiEnds || s.trouble == apiForgets {
		return time.Duration(s.rand.IntN(5000)) * time.Millisecond
	}
	return longestWatch/3 + time.Duration(s.rand.Int64N(int64(longestWatch*2/3)))
}

type apiWatch struct {
	*apiServer
	services []string
	at       int // the last version that was sent
	born     int // the epoch in which the watch began
	until    time.Time
}

// all returns the slices of the watched Services. The caller holds the lock.
func (w *apiWatch) all() (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		if sl := w.slices[name]; slices.Contains(w.services, sl.service) {
			texts = append(texts, sl.json(name, w.version))
		}
	}
	return texts
}

// run sends the slices and then their changes, until the watch ends.
func (w *apiWatch) run(ctx context.Context, to *io.PipeWriter, text string) {
	stop := context.AfterFunc(ctx, func() { _ = to.Close() })
	defer stop()
	end, bookmark := time.NewTimer(time.Until(w.until)), time.NewTicker(bookmarkEach)
	defer end.Stop()
	defer bookmark.Stop()
	for {
		if _, err := io.WriteString(to, text); err != nil {
			return
		}
		t, epoch, changed := w.now()
		switch {
		case epoch != w.born && (t == apiDown || t == apiReplaced):
			_ = to.CloseWithError(errors.New("read tcp 10.9.0.6:80: connection reset by peer"))
			return
		case epoch != w.born || w.ctx.Err() != nil:
			_ = to.Close()
			return
		}
		text = ""
		if t != apiSilent {
			if text = w.news(); text != "" {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-w.ctx.Done():
		case <-changed:
		case <-end.C:
			if t != apiSilent {
				_ = to.Close()
				return
			}
			end.Reset(time.Second)
		case <-bookmark.C:
			if t != apiSilent {
				text = w.bookmark()
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (w *apiWatch) news() (text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsent()
}

// unsent returns the events that the watch has not sent. The caller holds the lock.
func (w *apiWatch) unsent() (text string) {
	for _, e := range w.log {
		if e.version > w.at {
			if w.at = e.version; slices.Contains(w.services, e.service) {
				text += e.text
			}
		}
	}
	return text
}

// bookmark returns the unsent events and then a bookmark. It returns "" while the watch waits for a
// version that does not exist yet.
func (w *apiWatch) bookmark() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at > w.version {
		return ""
	}
	text := w.unsent()
	w.at = w.version
	return text + bookmarkText(w.version, false)
}
