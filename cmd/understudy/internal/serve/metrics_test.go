package serve

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readyStatus(t *testing.T, s *Server) int {
	t.Helper()
	get := func(path string) int {
		response, err := http.Get("http://" + s.metricsListener.Addr().String() + path)
		must(t, err)
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		must(t, err)
		return response.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	if code := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz answers %d", code)
	}
	return get("/readyz")
}

// A server is ready once it has something valid to serve, from files or from the cache.
func TestReadiness(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "endpoints: [")
	o := Options{Paths: []string{path}, Metrics: "0", Cache: t.TempDir()}
	s, l := start(t, o)
	if code := readyStatus(t, s); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d with a broken file, want 503", code)
	}
	write(t, path, endpoints("1"))
	l.wait(t, "cluster served")
	if code := readyStatus(t, s); code != http.StatusOK {
		t.Errorf("/readyz answers %d with a good file", code)
	}
	write(t, path, "endpoints: [")
	l.wait(t, "rejected, its last good content is still served")
	if code := readyStatus(t, s); code != http.StatusOK {
		t.Errorf("/readyz answers %d with the last good form of a file", code)
	}
	s, _ = restart(t, s, o)
	if code := readyStatus(t, s); code != http.StatusOK {
		t.Errorf("/readyz answers %d with what the cache held", code)
	}
}

func TestFileMetrics(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}, Metrics: "0"})
	expectMetrics(t, s, "understudy_serve_clusters 1", "understudy_serve_rejected_files 0", "understudy_serve_log_lines_dropped_total 0")
	write(t, filepath.Join(dir, "b.yaml"), "endpoints: [")
	l.wait(t, "rejected, and not served")
	s.Reload()
	l.wait(t, "all files are read again, as requested")
	write(t, filepath.Join(dir, "c.yaml"), endpoints("1"))
	l.wait(t, "cluster served")
	expectMetrics(t, s, "understudy_serve_clusters 2", "understudy_serve_rejected_files 1")
	remove(t, filepath.Join(dir, "b.yaml"))
	l.wait(t, "no longer rejected")
	expectMetrics(t, s, "understudy_serve_rejected_files 0")
	for _, name := range []string{"go_build_info", "go_goroutines"} {
		if !regexp.MustCompile("(?m)^" + name).MatchString(scrape(t, s)) {
			t.Errorf("%s is not measured", name)
		}
	}
}

func TestManifestUsesValidFlags(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "kubernetes", "serve.yaml"))
	must(t, err)
	var args []string
	for line := range strings.Lines(string(text)) {
		if arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok {
			args = append(args, "--"+arg)
		}
	}
	command := Command()
	if err := command.ParseFlags(args); err != nil || len(args) < 8 {
		t.Fatalf("of %q: %v", args, err)
	}
	from, err := command.Flags().GetStringArray("from")
	if err != nil || len(from) != 1 {
		t.Fatalf("--from is %q, %v", from, err)
	}
	if name, target, err := splitFrom(from[0]); name != "checkout" || target != "kubernetes:///checkout.shop:grpc" || err != nil {
		t.Errorf("--from is %s, %s, %v", name, target, err)
	}
}
