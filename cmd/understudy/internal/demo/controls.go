package demo

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/understudy-lb/understudy/debug"
)

//go:embed controls.html
var controlsHTML string

//go:embed controls.css
var controlsCSS []byte

var controls = template.Must(template.New("controls").Parse(controlsHTML))

// page serves the debug page with additional buttons and fields. These are plain HTML forms, which
// work without JavaScript, with a keyboard, and with a screen reader.
type page struct {
	controller *controller
	debug      http.Handler
}

// newPage returns the handler of the demo's page. It also serves the original debug page, at
// /debug/understudy/.
func newPage(ctl *controller) http.Handler {
	p := &page{controller: ctl, debug: debug.Handler()}
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", p.debug)
	mux.HandleFunc("GET /{$}", p.show)
	mux.HandleFunc("GET /controls.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(controlsCSS)
	})
	mux.HandleFunc("POST /do", p.formHandler(ctl.act))
	mux.HandleFunc("POST /weights", p.formHandler(func(form url.Values) (string, error) { return "weights", ctl.setWeights(form) }))
	return guard(mux)
}

// guard rejects requests that do not come from a page of this machine. Otherwise, a page of another
// site could send forms to the demo through a host name that resolves to a loopback address.
func guard(next http.Handler) http.Handler {
	next = debug.LoopbackOnly(http.NewCrossOriginProtection().Handler(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// formHandler returns a handler that calls submit with the form and redirects to the anchor that
// submit returns. The anchor makes the browser continue keyboard navigation near the form.
func (p *page) formHandler(submit func(url.Values) (anchor string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		anchor, err := submit(r.PostForm)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, "/#"+anchor, http.StatusSeeOther)
	}
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Has("asset") || q.Has("format") || q.Has("help") {
		p.debug.ServeHTTP(w, r)
		return
	}
	recorded := &recordedResponse{header: http.Header{}, code: http.StatusOK}
	p.debug.ServeHTTP(recorded, r)
	body := recorded.body.Bytes()
	if recorded.code == http.StatusOK {
		var err error
		if body, err = p.withControls(body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for name, values := range recorded.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Security-Policy", strings.Replace(recorded.header.Get("Content-Security-Policy"), "form-action 'none'", "form-action 'self'", 1))
	w.Header().Del("Content-Length")
	w.WriteHeader(recorded.code)
	_, _ = w.Write(body)
}

// withControls inserts the controls into the debug page. The debug page itself has no controls,
// because its viewers must not be able to disturb the program.
func (p *page) withControls(body []byte) ([]byte, error) {
	var buffer bytes.Buffer
	err := p.controller.withGroups(func(groups []*group, lastAction string) error {
		return controls.Execute(&buffer, struct {
			Groups     []*group
			Verbs      []action
			LastAction string
			Most       int
		}{groups, pageActions, lastAction, maxWeight})
	})
	if err != nil {
		return nil, err
	}
	for _, edit := range []struct{ old, new string }{
		{"<title>Understudy: channels</title>", "<title>Understudy: demo</title>\n<link rel=\"stylesheet\" href=\"/controls.css\">"},
		// Remove the automatic reload, which would discard text that is being typed. The buttons
		// reload the page, too.
		{`<noscript><meta http-equiv="refresh" content="5"></noscript>`, ""},
		{`<main id="main"`, buffer.String() + `<main id="main"`},
	} {
		if bytes.Count(body, []byte(edit.old)) != 1 {
			return nil, errors.New("the debug page has not exactly one " + edit.old)
		}
		body = bytes.Replace(body, []byte(edit.old), []byte(edit.new), 1)
	}
	return body, nil
}

type recordedResponse struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *recordedResponse) Header() http.Header         { return a.header }
func (a *recordedResponse) WriteHeader(code int)        { a.code = code }
func (a *recordedResponse) Write(p []byte) (int, error) { return a.body.Write(p) }
