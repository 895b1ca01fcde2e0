package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

func writeDropped(w io.Writer, dropped uint64) { fmt.Fprintf(w, "dropped %d\n", dropped) }

func writeLine(t *testing.T, q *queue, line string) {
	t.Helper()
	_, err := io.WriteString(q, line)
	must(t, err)
}

// If nobody reads the log, lines are dropped and logging does not block. When the log is read
// again, a line in it says how many lines were dropped.
func TestUnreadLogDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error)}
		q := newQueue(out, writeDropped)
		writeLine(t, q, "first\n")
		synctest.Wait()
		half := strings.Repeat("x", maxQueuedBytes/2-1) + "\n"
		for range 5 {
			writeLine(t, q, half)
		}
		if got := q.totalDropped.Load(); got != 3 {
			t.Errorf("%d lines are counted as dropped, want 3", got)
		}
		close(out.release)
		synctest.Wait()
		writeLine(t, q, "last\n")
		q.close()
		if want := "first\n" + half + half + "dropped 3\nlast\n"; out.text.String() != want {
			t.Errorf("the log is %.20q…%q", out.text.String(), out.text.String()[max(0, out.text.Len()-30):])
		}
	})
}

func TestFailedLogWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error, 1)}
		q := newQueue(out, writeDropped)
		out.release <- errors.New("disk full")
		writeLine(t, q, "one\ntwo\n")
		synctest.Wait()
		close(out.release)
		writeLine(t, q, "three\n")
		q.close()
		if want := "three\ndropped 2\n"; out.text.String() != want {
			t.Errorf("the log is %q, want %q", out.text.String(), want)
		}
	})
}

func TestQueueCloseTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &blockingWriter{release: make(chan error)}
		q := newQueue(out, writeDropped)
		writeLine(t, q, "never read\n")
		q.close()
		close(out.release)
		synctest.Wait()
	})
}
