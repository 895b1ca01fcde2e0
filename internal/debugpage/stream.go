package debugpage

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	mostViewers = 32
	period      = time.Second
	streamFor   = 5 * time.Minute  // after this, the browser reconnects
	writeFor    = 10 * time.Second // a viewer that does not read for this time is disconnected
)

type viewers struct{ n atomic.Int64 }

func (v *viewers) enter() bool {
	if v.n.Add(1) > mostViewers {
		v.n.Add(-1)
		return false
	}
	return true
}

func (v *viewers) leave() { v.n.Add(-1) }

// serveEvents sends the page as a server-sent event whenever it changes. For each viewer, it spends
// at most a twentieth of the time on collecting pages.
func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request, q query) {
	if !h.viewers.enter() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers, try again later", http.StatusServiceUnavailable)
		return
	}
	defer h.viewers.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	end := time.NewTimer(streamFor)
	defer end.Stop()
	var last []byte
	for {
		began := time.Now()
		next, err := h.event(q)
		if err != nil {
			return
		}
		if !bytes.Equal(next, last) {
			last = next
			_ = control.SetWriteDeadline(time.Now().Add(writeFor)) // not all servers support deadlines, so the error is ignored
			if _, err := w.Write(next); err != nil || control.Flush() != nil {
				return
			}
		}
		wait := time.NewTimer(max(period, 20*time.Since(began)))
		select {
		case <-wait.C:
		case <-r.Context().Done():
			wait.Stop()
			return
		case <-end.C:
			wait.Stop()
			return
		}
	}
}

func (h *handler) event(q query) ([]byte, error) {
	var content bytes.Buffer
	if err := templates.ExecuteTemplate(&content, "main", h.collect(q)); err != nil {
		return nil, err
	}
	var event bytes.Buffer
	for line := range bytes.Lines(content.Bytes()) {
		event.WriteString("data: ")
		event.Write(bytes.TrimRight(line, "\n"))
		event.WriteByte('\n')
	}
	event.WriteByte('\n')
	return event.Bytes(), nil
}
