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

// page is the debug page with buttons and fields. They are plain HTML forms, which work without
// JavaScript, with a keyboard, and with a screen reader.
type page struct {
	stage *stage
	debug http.Handler
}

// newPage returns the handler of the demo's page. It also serves the original debug page, at
// /debug/understudy/.
func newPage(st *stage) http.Handler {
	p := &page{stage: st, debug: debug.Handler()}
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", p.debug)
	mux.HandleFunc("GET /{$}", p.show)
	mux.HandleFunc("GET /controls.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(controlsCSS)
	})
	mux.HandleFunc("POST /do", p.change(st.act))
	mux.HandleFunc("POST /weights", p.change(func(form url.Values) (string, error) { return "weights", st.setWeights(form) }))
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

// change returns a handler that calls do with a form and redirects to the anchor that do returns.
// The anchor keeps the keyboard focus.
func (p *page) change(do func(url.Values) (place string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		place, err := do(r.PostForm)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, "/#"+place, http.StatusSeeOther)
	}
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Has("asset") || q.Has("format") || q.Has("help") {
		p.debug.ServeHTTP(w, r)
		return
	}
	shown := &answer{header: http.Header{}, code: http.StatusOK}
	p.debug.ServeHTTP(shown, r)
	body := shown.body.Bytes()
	if shown.code == http.StatusOK {
		var err error
		if body, err = p.withControls(body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for name, values := range shown.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Security-Policy", strings.Replace(shown.header.Get("Content-Security-Policy"), "form-action 'none'", "form-action 'self'", 1))
	w.Header().Del("Content-Length")
	w.WriteHeader(shown.code)
	_, _ = w.Write(body)
}

// withControls inserts the controls into the debug page. The debug page itself has none, because a
// program must not be disturbed by someone who looks at its page.
func (p *page) withControls(body []byte) ([]byte, error) {
	var added bytes.Buffer
	err := p.stage.look(func(groups []*group, said string) error {
		return controls.Execute(&added, struct {
			Groups []*group
			Verbs  []verb
			Said   string
			Most   int
		}{groups, verbs, said, mostWeight})
	})
	if err != nil {
		return nil, err
	}
	for _, edit := range []struct{ old, new string }{
		{"<title>Understudy: channels</title>", "<title>Understudy: demo</title>\n<link rel=\"stylesheet\" href=\"/controls.css\">"},
		// Remove the automatic reload, which would discard text that is being typed. The buttons
		// reload the page anyway.
		{`<noscript><meta http-equiv="refresh" content="5"></noscript>`, ""},
		{`<main id="main"`, added.String() + `<main id="main"`},
	} {
		if bytes.Count(body, []byte(edit.old)) != 1 {
			return nil, errors.New("the debug page has not exactly one " + edit.old)
		}
		body = bytes.Replace(body, []byte(edit.old), []byte(edit.new), 1)
	}
	return body, nil
}

type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
