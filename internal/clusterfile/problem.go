package clusterfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/envoy"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Line and Column count from 1.
	Line, Column int
	// Text says what was found and what is wanted.
	Text string
}

// Error is the error of a file that was read and is rejected. It lists up to
// envoy.MaxProblems problems.
type Error struct {
	// Path is the path of the file, as it was given.
	Path string
	// Problems are in the order of the file, at least one.
	Problems []Problem
	// More counts the problems that were left out of Problems.
	More int
}

// Error returns all problems in one line, each as "path:line:column: text".
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

// Refused says, for metrics, that there was an answer, which was refused.
func (e *Error) Refused() bool { return true }

// add adds a problem, or counts it if there are many already.
func (e *Error) add(line, column int, format string, args ...any) {
	if len(e.Problems) == envoy.MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, Problem{Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// err returns e with its problems in order, nil if it has none.
func (e *Error) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}
