package clusterfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type position struct{ Line, Column int }

// Problem is a mistake in a file.
type Problem struct {
	Line, Column int
	Text         string
}

// Error is the error for an invalid file. It lists up to messages.MaxProblems problems.
type Error struct {
	Path string
	// Problems is sorted by position. It is never empty.
	Problems []Problem
	More     int
}

// Error returns all problems on one line, each as "path:line:column: text".
func (e *Error) Error() string {
	texts := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		texts = append(texts, fmt.Sprintf("%s:%d:%d: %s", e.Path, p.Line, p.Column, p.Text))
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(texts, "; ")
}

// Refused implements the interface of discovery.Refused.
func (e *Error) Refused() bool { return true }

func (e *Error) add(at position, format string, args ...any) {
	if len(e.Problems) == messages.MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, Problem{at.Line, at.Column, printable.Line(fmt.Sprintf(format, args...), messages.MaxText)})
}

func (e *Error) merge(other *Error) {
	for _, p := range other.Problems {
		e.add(position{p.Line, p.Column}, "%s", p.Text)
	}
	e.More += other.More
}

// err returns e with its problems sorted, or nil if there are none.
func (e *Error) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}
