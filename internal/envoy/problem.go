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

// problems collects up to MaxProblems and counts the others.
type problems struct {
	list []Problem
	more int
}

func (p *problems) add(path, format string, args ...any) {
	if len(p.list) == MaxProblems {
		p.more++
		return
	}
	p.list = append(p.list, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// err returns an Invalid, nil if there is no problem.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Invalid{Problems: p.list, More: p.more}
}
