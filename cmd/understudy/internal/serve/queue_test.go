package serve

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

func TestFailedLogWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error, 1)}
		var reports []uint64
		q := newQueue(out, func(dropped uint64) { reports = append(reports, dropped) })
		out.release <- errors.New("disk full")
		writeLine(t, q, "lost\n")
		synctest.Wait()
		close(out.release)
		writeLine(t, q, "kept\n")
		q.close()
		if out.text.String() != "kept\n" || !slices.Equal(reports, []uint64{1}) {
			t.Errorf("the log is %q, and %d lines are reported as dropped", out.text.String(), reports)
		}
	})
}

// A log that nobody reads does not keep the process from exiting, even if the queue is full.
func TestQueueCloseTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error)}
		q := newQueue(out, nil)
		for range maxQueuedLines + 1 {
			writeLine(t, q, "never read\n")
			synctest.Wait()
		}
		begin := time.Now()
		q.close()
		if elapsed := time.Since(begin); elapsed != flushTimeout {
			t.Errorf("close took %v, want %v", elapsed, flushTimeout)
		}
		close(out.release)
		synctest.Wait()
	})
}
