package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
