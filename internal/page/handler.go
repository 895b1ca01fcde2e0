// Package page renders the page of package debug as HTML and as JSON. The JSON is meant for
// programs such as understudy watch.
package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Handler returns the handler of the debug page and its event stream.
func Handler() http.Handler { return &handler{} }

// Now returns the page with all channels of this process. Don't modify it.
func Now() *Page { return collect(query{}) }

type handler struct {
	viewers atomic.Int64

	mu    sync.Mutex
	query query
	page  *Page
}

func (h *handler) collect(q query) *Page {
	// Viewers share a page if they ask for the same one within pageLifetime.
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.page == nil || h.query != q || time.Since(h.page.Time) > pageLifetime {
		h.page, h.query = collect(q), q
	}
	return h.page
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed, want GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	values := r.URL.Query()
	q, err := parse(values)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch asset, format := values.Get("asset"), values.Get("format"); {
	case values.Has("help"):
		serveHelp(w)
	case asset != "":
		serveAsset(w, asset)
	case format == "":
		h.servePage(w, q)
	case format == "json":
		h.serveJSON(w, q)
	case format == "events":
		h.serveEvents(w, r, q)
	default:
		http.Error(w, fmt.Sprintf("format %.20q given, want json, events or none", format), http.StatusBadRequest)
	}
}

func parse(values url.Values) (q query, err error) {
	if text := values.Get("channel"); text != "" {
		if q.channel, err = strconv.ParseUint(text, 10, 64); err != nil {
			return q, fmt.Errorf("channel %.20q given, want its number", text)
		}
	}
	if text := values.Get("endpoints"); text != "" {
		n, err := strconv.ParseUint(text, 10, 20)
		if err != nil {
			return q, fmt.Errorf("endpoints %.20q given, want how many of each locality to show", text)
		}
		q.endpoints = int(n)
	}
	return q, nil
}

func (q query) link(format string) string {
	values := url.Values{"format": {format}}
	if q.channel != 0 {
		values.Set("channel", strconv.FormatUint(q.channel, 10))
	}
	if q.endpoints != 0 {
		values.Set("endpoints", strconv.Itoa(q.endpoints))
	}
	return "?" + values.Encode()
}

var assets = map[string]struct{ file, kind string }{
	"style":  {"style.css", "text/css; charset=utf-8"},
	"script": {"script.js", "text/javascript; charset=utf-8"},
}

func serveAsset(w http.ResponseWriter, name string) {
	asset, known := assets[name]
	data, err := files.ReadFile(asset.file)
	if !known || err != nil {
		http.Error(w, fmt.Sprintf("asset %.20q given, want style or script", name), http.StatusNotFound)
		return
	}
	answer(w, asset.kind, data)
}

func (h *handler) servePage(w http.ResponseWriter, q query) {
	var page bytes.Buffer
	err := templates.ExecuteTemplate(&page, "page", struct {
		Page         *Page
		JSON, Events string
	}{h.collect(q), q.link("json"), q.link("events")})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "text/html; charset=utf-8", page.Bytes())
}

func (h *handler) serveJSON(w http.ResponseWriter, q query) {
	encoded, err := json.MarshalIndent(h.collect(q), "", " ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "application/json", append(encoded, '\n'))
}

func answer(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}
