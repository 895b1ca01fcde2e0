package serve

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

type blockingWriter struct {
	release chan error
	text    bytes.Buffer
}

func (s *blockingWriter) Write(p []byte) (int, error) {
	if err := <-s.release; err != nil {
		return 0, err
	}
	return s.text.Write(p)
}

func writeLine(t *testing.T, q *queue, line string) {
	t.Helper()
	_, err := io.WriteString(q, line)
	must(t, err)
}

// If nobody reads the log, lines are dropped and logging does not block. When the log is read
// again, the number of dropped lines is reported.
func TestUnreadLogDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error)}
		var reports []uint64
		q := newQueue(out, func(dropped uint64) { reports = append(reports, dropped) })
		writeLine(t, q, "first\n")
		synctest.Wait()
		for range maxQueuedLines + 3 {
			writeLine(t, q, "x\n")
		}
		if got := q.dropped.Load(); got != 3 {
			t.Errorf("%d lines are counted as dropped, want 3", got)
		}
		close(out.release)
		synctest.Wait()
		writeLine(t, q, "last\n")
		q.close()
		if want := "first\n" + strings.Repeat("x\n", maxQueuedLines) + "last\n"; out.text.String() != want {
			t.Errorf("the log is %.20q…%q", out.text.String(), out.text.String()[max(0, out.text.Len()-30):])
		}
		if !slices.Equal(reports, []uint64{3}) {
			t.Errorf("reported are %d dropped lines, want 3 once", reports)
		}
	})
}
