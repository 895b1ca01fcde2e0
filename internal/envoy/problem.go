package envoy

import (
	"fmt"
	"strings"
)

// MaxProblems is the largest number of problems that an Invalid lists. It counts the
// others.
const MaxProblems = 20

// Problem is one thing that is wrong with an input, or that is worth a note.
type Problem struct {
	// Path is the place in the protobuf message, by the names of the .proto file:
	// "endpoints[2].lb_endpoints[0].load_balancing_weight". It is empty for the message
	// as a whole.
	Path string
	// Text says what was found and what is wanted.
	Text string
}

// String returns the path and the text.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Within returns the problem of a part as one of the whole, by the path of the part.
func (p Problem) Within(part string) Problem {
	p.Path = strings.TrimSuffix(part+"."+p.Path, ".")
	return p
}

// Invalid is the error of an input that is rejected as a whole. It lists up to
// MaxProblems problems.
type Invalid struct {
	// Problems are in the order of the input, at least one.
	Problems []Problem
	// More counts the problems that were left out of Problems.
	More int
}

// Refused says, for metrics, that there was an answer, which was refused.
func (e *Invalid) Refused() bool { return true }

// Error returns the problems in one line.
func (e *Invalid) Error() string {
	texts := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		texts = append(texts, p.String())
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(texts, "; ")
}

// Add adds a problem, or counts it if there are many already.
func (e *Invalid) Add(path, format string, args ...any) {
	if len(e.Problems) == MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Err returns e, nil if there is no problem.
func (e *Invalid) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
