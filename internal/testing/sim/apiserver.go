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
	maxWatchTime     = 90 * time.Second
	bookmarkInterval = 20 * time.Second
)

type apiFault int

const (
	noAPIFault     apiFault = iota
	apiDown                 // connections are refused
	apiSilent               // neither old nor new requests get a response
	apiBusy                 // requests get status 429
	apiCompacts             // the server discards old versions and ends watches
	apiEndsWatches          // watches end early
	apiReplaced             // connections are refused; restore then continues with lower versions
	apiFaultCount
)

func (t apiFault) String() string {
	return "the API server " + [...]string{"is well", "refuses connections", "does not answer", "is too busy", "forgets old versions", "ends watches soon", "is replaced from a backup"}[t]
}

// apiServer is a fake Kubernetes API server that serves EndpointSlices. It implements
// http.RoundTripper.
type apiServer struct {
	ctx                  context.Context //nolint:containedctx // ends when the server stops
	rejectsInitialEvents bool

	mu          sync.Mutex
	rand        *rand.Rand
	slices      map[string]kubeSlice
	servedSince map[string]time.Time
	log         []apiEvent // the events after version oldest
	version     int
	oldest      int
	fault       apiFault
	epoch       int           // fail increments it, and each watch of an earlier epoch then ends
	changed     chan struct{} // closed at each change
}

type apiEvent struct {
	version       int
	service, text string
}

func newAPIServer(ctx context.Context, r *rand.Rand) *apiServer {
	return &apiServer{ctx: ctx, rand: r, rejectsInitialEvents: r.IntN(3) == 0, slices: make(map[string]kubeSlice), servedSince: make(map[string]time.Time), version: 1_000_000, oldest: 1_000_000, changed: make(chan struct{})}
}

func (s *apiServer) change(update func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	update()
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

func (s *apiServer) set(name string, slice kubeSlice) bool {
	s.mu.Lock()
	before, known := s.slices[name]
	s.mu.Unlock()
	if known && before.json(name, 0) == slice.json(name, 0) {
		return false
	}
	s.change(func() {
		if !s.serves(slice.service) {
			s.servedSince[slice.service] = time.Now()
		}
		s.slices[name] = slice
		s.add(map[bool]string{false: "ADDED", true: "MODIFIED"}[known], name, slice)
	})
	return true
}

func (s *apiServer) serves(service string) bool {
	// The caller holds the lock.
	for _, sl := range s.slices {
		if sl.service == service {
			return true
		}
	}
	return false
}

func (s *apiServer) servesFor(service string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(service) {
		return 0
	}
	return time.Since(s.servedSince[service])
}

func (s *apiServer) remove(name string) {
	s.change(func() {
		s.add("DELETED", name, s.slices[name])
		delete(s.slices, name)
	})
}

func (s *apiServer) add(kind, name string, slice kubeSlice) {
	// The caller holds the lock.
	s.version++
	s.log = append(s.log, apiEvent{s.version, slice.service, eventText(kind, slice.json(name, s.version))})
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

// compact needs the lock.
func (s *apiServer) compact() { s.oldest, s.log = s.version, nil }

func (s *apiServer) fail(t apiFault) string {
	s.change(func() {
		if s.fault = t; t != apiSilent {
			s.epoch++
		}
		if t == apiCompacts {
			s.compact()
		}
	})
	return t.String()
}

func (s *apiServer) restore() {
	// Requests that got no response during apiSilent then continue.
	s.change(func() {
		if s.fault == apiReplaced {
			s.version -= 100_000
			s.compact()
		}
		s.fault = noAPIFault
	})
}

func (s *apiServer) current() (t apiFault, epoch int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.epoch, s.changed
}

func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	t, epoch, changed := s.current()
	for ; t == apiSilent; t, epoch, changed = s.current() {
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
	if code, text := s.errorResponse(t, r, version); code != 0 {
		return newResponse(code, text), nil
	}
	_, services, _ := strings.Cut(strings.TrimSuffix(q.Get("labelSelector"), ")"), "(")
	w := &apiWatch{s, strings.Split(services, ","), version, epoch, time.Now().Add(s.drawWatchTime())}
	if !q.Has("watch") {
		return newResponse(http.StatusOK, fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.version, strings.Join(w.objects(), ","))), nil
	}
	text := ""
	switch {
	case version == 0:
		for _, sl := range w.objects() {
			text += eventText("ADDED", sl)
		}
		w.sentVersion = s.version
		text += bookmarkText(s.version, true)
	case version < s.oldest:
		return newResponse(http.StatusOK, eventText("ERROR", `{"message":"too old resource version","code":410}`)), nil
	}
	reader, writer := io.Pipe()
	go w.run(r.Context(), writer, text)
	response := newResponse(http.StatusOK, "")
	response.Body = reader
	return response, nil
}

func (s *apiServer) errorResponse(t apiFault, r *http.Request, version int) (code int, text string) {
	// The caller holds the lock.
	switch {
	case t == apiBusy:
		return http.StatusTooManyRequests, `{"message":"too many requests, please try again later"}`
	case !strings.HasSuffix(r.URL.Path, "/namespaces/sim/endpointslices"):
		return http.StatusForbidden, `{"message":"forbidden"}`
	case s.rejectsInitialEvents && r.URL.Query().Has("sendInitialEvents"):
		return http.StatusUnprocessableEntity, `{"message":"sendInitialEvents is forbidden"}`
	case version > 0 && version < s.oldest && s.rand.IntN(2) == 0:
		return http.StatusGone, `{"message":"too old resource version","code":410}`
	case version > s.version && s.rand.IntN(2) == 0:
		return http.StatusGatewayTimeout, `{"message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`
	}
	return 0, ""
}

func newResponse(code int, text string) *http.Response {
	h := http.Header{}
	if code == http.StatusTooManyRequests {
		h.Set("Retry-After", "3")
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(text))}
}

func (s *apiServer) drawWatchTime() time.Duration {
	// The caller holds the lock.
	if s.fault == apiEndsWatches || s.fault == apiCompacts {
		return time.Duration(s.rand.IntN(5000)) * time.Millisecond
	}
	return maxWatchTime/3 + time.Duration(s.rand.Int64N(int64(maxWatchTime*2/3)))
}

type apiWatch struct {
	*apiServer
	services    []string
	sentVersion int
	beginEpoch  int
	deadline    time.Time
}

func (w *apiWatch) objects() (texts []string) {
	// The caller holds the lock.
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		if sl := w.slices[name]; slices.Contains(w.services, sl.service) {
			texts = append(texts, sl.json(name, w.version))
		}
	}
	return texts
}

func (w *apiWatch) run(ctx context.Context, body *io.PipeWriter, text string) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer stop()
	end, bookmark := time.NewTimer(time.Until(w.deadline)), time.NewTicker(bookmarkInterval)
	defer end.Stop()
	defer bookmark.Stop()
	for {
		if _, err := io.WriteString(body, text); err != nil {
			return
		}
		t, epoch, changed := w.current()
		switch {
		case epoch != w.beginEpoch && (t == apiDown || t == apiReplaced):
			_ = body.CloseWithError(errors.New("read tcp 10.9.0.6:80: connection reset by peer"))
			return
		case epoch != w.beginEpoch || w.ctx.Err() != nil:
			_ = body.Close()
			return
		}
		text = ""
		if t != apiSilent {
			if text = w.takeEvents(); text != "" {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-w.ctx.Done():
		case <-changed:
		case <-end.C:
			if t != apiSilent {
				_ = body.Close()
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

func (w *apiWatch) takeEvents() (text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeEventsLocked()
}

func (w *apiWatch) takeEventsLocked() (text string) {
	// The caller holds the lock.
	for _, e := range w.log {
		if e.version > w.sentVersion {
			if w.sentVersion = e.version; slices.Contains(w.services, e.service) {
				text += e.text
			}
		}
	}
	return text
}

// bookmark returns "" while the watch waits for a version that does not exist yet.
func (w *apiWatch) bookmark() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sentVersion > w.version {
		return ""
	}
	text := w.takeEventsLocked()
	w.sentVersion = w.version
	return text + bookmarkText(w.version, false)
}
