package page

import (
	"bytes"
	"net/http"
	"time"
)

const (
	maxViewers        = 32
	minInterval       = time.Second
	maxStreamDuration = 5 * time.Minute  // after that, the browser reconnects
	writeTimeout      = 10 * time.Second // we drop viewers that don't read for this long
)

func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request, q query) {
	// We send the page whenever it changes, but rendering must not take up more than 5% of our time
	// per viewer.
	defer h.viewers.Add(-1)
	if h.viewers.Add(1) > maxViewers {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers, try again later", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	end := time.NewTimer(maxStreamDuration)
	defer end.Stop()
	var last []byte
	for {
		start := time.Now()
		next, err := h.renderEvent(q)
		if err != nil {
			return
		}
		if !bytes.Equal(next, last) {
			last = next
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // some servers don't support deadlines
			if _, err := w.Write(next); err != nil || control.Flush() != nil {
				return
			}
		}
		wait := time.NewTimer(max(minInterval, 20*time.Since(start)))
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

func (h *handler) renderEvent(q query) ([]byte, error) {
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
