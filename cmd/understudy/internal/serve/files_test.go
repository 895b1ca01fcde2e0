package serve

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// If a process writes a file slowly and in place, the server reads the file when it is complete,
// and serves its previous content until then. An incomplete new file is not reported as invalid.
func TestSlowlyWrittenFile(t *testing.T) {
	dir := t.TempDir()
	known, newFile := filepath.Join(dir, "known.yaml"), filepath.Join(dir, "fresh.yaml")
	write(t, known, endpoints("1", "2", "3"))
	synctest.Test(t, func(t *testing.T) {
		f := newFiles([]string{dir}, slog.New(slog.DiscardHandler))
		expect := func(what string, want map[string]int) {
			t.Helper()
			got := make(map[string]int)
			var problems []error
			for _, r := range f.read(nil) {
				for name, g := range r.clusters {
					got[name] = g.endpointCount()
				}
				if r.problem != nil {
					problems = append(problems, r.problem)
				}
			}
			if !maps.Equal(got, want) || len(problems) != 0 {
				t.Errorf("%s: %v and problems %v, want %v", what, got, problems, want)
			}
		}
		expect("at first", map[string]int{"known": 3})
		complete := endpoints("4", "5")
		half := len(endpoints("4"))
		for _, path := range []string{known, newFile} {
			must(t, os.WriteFile(path, []byte(complete[:half-4]), 0o600))
		}
		for range 4 {
			expect("with half of them", map[string]int{"known": 3})
			time.Sleep(300 * time.Millisecond)
		}
		must(t, os.WriteFile(known, []byte(complete), 0o600))
		must(t, os.WriteFile(newFile, []byte(complete), 0o600))
		expect("at once", map[string]int{"known": 3})
		time.Sleep(time.Second)
		expect("after a second", map[string]int{"known": 3, "fresh": 2})
		time.Sleep(time.Second)
		expect("after two, since one has become smaller", map[string]int{"known": 2, "fresh": 2})
	})
}

// A file that never stops changing is not read again. The log reports this once an hour.
func TestConstantlyWrittenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	synctest.Test(t, func(t *testing.T) {
		log := newLogs()
		f := newFiles([]string{path}, slog.New(slog.NewJSONHandler(log, nil)))
		f.read(nil)
		for i := range 8000 { // two hours
			must(t, os.WriteFile(path, []byte(endpoints("1", "2")+strings.Repeat("\n", i%2)), 0o600))
			if got := f.read(nil); len(got) != 1 || got[0].problem != nil || got[0].clusters["a"].endpointCount() != 1 {
				t.Fatalf("%v, want what it held", got)
			}
			time.Sleep(900 * time.Millisecond) // a file that does not change for a second is read
		}
		for _, line := range log.lines {
			if line["msg"] != "not read yet" || !strings.Contains(line["error"].(string), "has been changing for 10s") {
				t.Errorf("the log says %v", line)
			}
		}
		if n := len(log.lines); n != 2 {
			t.Errorf("%d lines in two hours, want 2", n)
		}
	})
}
