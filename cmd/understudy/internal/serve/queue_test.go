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

type stuck struct {
	let  chan error
	text bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	if err := <-s.let; err != nil {
		return 0, err
	}
	return s.text.Write(p)
}

func noted(w io.Writer, dropped uint64) { fmt.Fprintf(w, "dropped %d\n", dropped) }

func writeLine(t *testing.T, q *queue, line string) {
	t.Helper()
	_, err := io.WriteString(q, line)
	must(t, err)
}

// If nobody reads the log, lines are dropped and logging does not block. When somebody reads it
// again, a line says how many were dropped.
func TestALogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{let: make(chan error)}
		q := newQueue(out, noted)
		writeLine(t, q, "first\n")
		synctest.Wait()
		half := strings.Repeat("x", maxQueued/2-1) + "\n"
		for range 5 {
			writeLine(t, q, half)
		}
		if got := q.total.Load(); got != 3 {
			t.Errorf("%d lines are counted as dropped, want 3", got)
		}
		close(out.let)
		synctest.Wait()
		writeLine(t, q, "last\n")
		q.close()
		if want := "first\n" + half + half + "dropped 3\nlast\n"; out.text.String() != want {
			t.Errorf("the log is %.20q…%q", out.text.String(), out.text.String()[max(0, out.text.Len()-30):])
		}
	})
}

func TestALogThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{let: make(chan error, 1)}
		q := newQueue(out, noted)
		out.let <- errors.New("disk full")
		writeLine(t, q, "one\ntwo\n")
		synctest.Wait()
		close(out.let)
		writeLine(t, q, "three\n")
		q.close()
		if want := "three\ndropped 2\n"; out.text.String() != want {
			t.Errorf("the log is %q, want %q", out.text.String(), want)
		}
	})
}

func TestTheEndDoesNotWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{let: make(chan error)}
		q := newQueue(out, noted)
		writeLine(t, q, "never read\n")
		q.close()
		close(out.let)
		synctest.Wait()
	})
}
