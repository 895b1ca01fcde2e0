package demo

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/debug"
)

// Hold keeps backends, calls and the page running until ctx ends.
func Hold(ctx context.Context, opts Options) error {
	return withCalls(ctx, opts, slog.New(slog.NewTextHandler(opts.Progress, nil)), func(c *cluster, _ *traffic) error {
		p := &page{cluster: c}
		defer p.mu.Lock() // stays locked, since any further action might restore a backend
		return p.serve(ctx, opts)
	})
}

//go:embed controls.html controls.css
var files embed.FS

var controls = template.Must(template.ParseFS(files, "controls.html"))

var debugPage = debug.Handler()

// page is the debug page with buttons. They're plain HTML, so they work without JavaScript, with a
// keyboard, and with a screen reader.
type page struct {
	mu      sync.Mutex
	cluster *cluster
	said    string // feedback on the last action
}

type action struct {
	Name, Label, past string
	mode              mode
}

var actions = []action{
	{"kill", "Kill", "Killed", killed},
	{"hang", "Hang", "Hung", hung},
	{"fill", "Fill", "Filled", full},
	{"fail", "Errors", "Made to return errors:", failing},
	{"restore", "Restore", "Restored", serving},
}

type row struct{ Name, Rank, State string }

func (c *cluster) rows() []row {
	var rows []row
	for _, b := range c.backends {
		for i, name := range b.names() {
			if !slices.ContainsFunc(rows, func(r row) bool { return r.Name == name }) {
				rows = append(rows, row{Name: name, Rank: []string{"priority", "locality", "endpoint"}[i]})
			}
		}
		rows[len(rows)-1].State = b.current().String()
	}
	return rows
}

func (p *page) act(form url.Values) (name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(actions, func(a action) bool { return form.Has(a.Name) })
	if i < 0 {
		return "", errors.New("no action given, want kill, hang, fill, fail or restore")
	}
	name = form.Get(actions[i].Name)
	if !slices.ContainsFunc(p.cluster.rows(), func(r row) bool { return r.Name == name }) {
		return "", fmt.Errorf("%s=%.40q given, want a priority, a locality or an endpoint of the demo", actions[i].Name, name)
	}
	p.said = fmt.Sprintf("%s %s at %s.", actions[i].past, name, time.Now().Format(time.TimeOnly))
	return name, p.cluster.set(name, actions[i].mode)
}

func (p *page) handler() http.Handler {
	// Only accept requests from pages on this machine. Otherwise, another site's page could send
	// forms to us through a name that resolves to loopback.
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", debugPage)
	mux.HandleFunc("GET /{$}", p.show)
	mux.Handle("GET /controls.css", http.FileServerFS(files))
	mux.HandleFunc("POST /do", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		_ = r.ParseForm() // an invalid form is empty
		if name, err := p.act(r.PostForm); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		} else {
			http.Redirect(w, r, "/#"+name, http.StatusSeeOther)
		}
	})
	guarded := debug.LoopbackOnly(http.NewCrossOriginProtection().Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cache-Control", "no-store")
		guarded.ServeHTTP(w, r)
	})
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		debugPage.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var form bytes.Buffer
	err := controls.Execute(&form, struct {
		Rows    []row
		Actions []action
		Said    string
	}{p.cluster.rows(), actions, cmp.Or(p.said, "Calls are made all the time. See below where they go.")})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	debugPage.ServeHTTP(&withControls{w, form.String()}, r)
}

// withControls adds the controls to the debug page. They can't be part of the page itself, since
// its viewers must not be able to interfere with the program.
type withControls struct {
	http.ResponseWriter
	controls string
}

func (w *withControls) Write(body []byte) (int, error) {
	header := w.Header()
	header.Del("Content-Length")
	header.Set("Content-Security-Policy", strings.Replace(header.Get("Content-Security-Policy"), "form-action 'none'", "form-action 'self'", 1))
	// The buttons reload the page. If it also reloaded by itself, they'd lose focus.
	text := strings.NewReplacer(`<main id="main"`, w.controls+`<main id="main"`, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, "").Replace(string(body))
	_, err := w.ResponseWriter.Write([]byte(text))
	return len(body), err
}

func (p *page) serve(ctx context.Context, opts Options) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })() //nolint:errcheck // Serve returns the error
	fmt.Fprintf(opts.Out, "page: http://%s/\n", listener.Addr())
	fmt.Fprintln(opts.Progress, "calls continue until you press Ctrl-C")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
